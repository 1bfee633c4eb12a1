"""A script under `python -m benchmodels` does what it does under `python`: output, exit code, traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest


def test_what_a_script_made_lasts_until_the_end_even_if_another_module_is_main_by_then(tmp_path):
    """As in a process that was forked from one with torch: models that were never called must not be gone before they are told."""
    (tmp_path / "s.py").write_text("import sys, weakref\nclass A: pass\na = A()\nsys.seen = weakref.ref(a)\n")
    code = "import gc, sys\nfrom benchmodels.script_runner import run_script\nmain = sys.modules['__main__']\n"
    code += "run_script('s.py', [])\nsys.modules['__main__'] = main\ngc.collect()\nprint(sys.seen() is not None)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


@pytest.mark.parametrize(
    "program",
    [
        "print(__name__, __file__, __doc__, __spec__, __package__, __cached__); import sys; print(sys.argv, sys.path[0])",
        "import sys; print(sys.stdin.read()); sys.exit(3)",
        "raise SystemExit('a word')",
        "def f():\n    try: int('x')\n    except ValueError as e: raise KeyError('k') from e\nf()",
        "x = 1\nthis is no python",
        "import os; os._exit(4)",
        "raise KeyboardInterrupt",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import sys, threading\nthreading.Thread(target=lambda: print('from a thread')).start()",
        "import atexit; atexit.register(print, 'at the end'); import nothing_of_this_name",
        "import sys\nsys.excepthook = lambda *e: print('own hook', e[0].__name__)\n1 / 0",
        "import os, shutil; shutil.rmtree(os.getcwd()); print('gone')",
        "import multiprocessing as m\ndef f(x): return x * 2\nif __name__ == '__main__':\n"
        "    print(m.get_context('spawn').Pool(1).map(f, [1, 2]))",
        "import pickle\nclass A: pass\nprint(pickle.loads(pickle.dumps(A())).__class__, A.__module__)",
        "import inspect\ndef f(): pass\nprint(inspect.getsource(f))",
    ],
)
def test_a_script_runs_as_it_does_plainly(under_discovery, tmp_path, program):
    found = under_discovery(program, "--flag", "value", stdin="given")
    (tmp_path / "script.py").parent.mkdir(exist_ok=True)
    (tmp_path / "script.py").write_text(program)
    env = {**os.environ, "PYTHONPATH": ""}
    plain = subprocess.run([sys.executable, str(tmp_path / "script.py"), "--flag", "value"], env=env, cwd=tmp_path,
                           input="given", capture_output=True, text=True)  # fmt: skip
    assert (found.code, found.output, found.errors) == (plain.returncode, plain.stdout, plain.stderr)
    assert found.all("model") == []


@pytest.mark.parametrize(
    ("file", "module", "text"),
    [
        ("pkg/__main__.py", "pkg", "from .nets import width"),
        ("pkg/__main__.py", "pkg", "from pkg.nets import width"),
        ("pkg/sub/train.py", "pkg.sub.train", "from ..nets import width"),
        ("pkg/sub/train.py", "pkg.sub.train", "from pkg.nets import width"),
        (
            "pkg/sub/train.py",
            "pkg.sub.train",
            "import multiprocessing as m\nfrom ..nets import width\ndef f(x): return x * width\n"
            "if __name__ == '__main__':\n    print(m.get_context('spawn').Pool(1).map(f, [1, 2]))\nwidth",
        ),
        ("loose/train.py", "loose.train", "from .nets import width"),
    ],
)
def test_a_file_of_a_package_runs_as_its_module(under_discovery, tmp_path, file, module, text):
    for folder in ("pkg", "pkg/sub", "loose"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "nets.py").write_text("width = 7")
    for folder in ("pkg", "pkg/sub"):
        (tmp_path / folder / "__init__.py").touch()
    program = f"{text}\nimport sys\nprint(width, __name__, __file__, sys.argv[1:])\n"
    (tmp_path / file).write_text(program)
    plain = subprocess.run([sys.executable, "-m", module, "--x"], cwd=tmp_path, capture_output=True, text=True)
    found = under_discovery(tmp_path / file, "--x")
    assert (found.code, found.output, found.errors) == (0, plain.stdout, plain.stderr)


def test_a_notebook_has_display(under_discovery, tmp_path):
    cell = {"cell_type": "code", "source": "display('seen', 2)", "metadata": {}}
    (tmp_path / "n.ipynb").write_text(json.dumps({"nbformat": 4, "cells": [cell]}))
    assert under_discovery(tmp_path / "n.ipynb").output == "'seen'\n2\n"
    assert "NameError" in under_discovery("display(1)").errors, "a script has none"


def test_a_script_that_is_not_there(under_discovery, tmp_path):
    found = under_discovery(tmp_path / "absent.py")
    plain = subprocess.run([sys.executable, str(tmp_path / "absent.py")], capture_output=True, text=True)
    assert (found.code, found.errors) == (plain.returncode, plain.stderr)


def test_started_interpreters_are_counted_and_other_programs_are_not(under_discovery):
    found = under_discovery(
        """
        import multiprocessing, os, subprocess, sys
        def nothing(): pass
        if __name__ == "__main__":
            subprocess.run([sys.executable, "-c", ""])
            subprocess.run(["true"])
            os.system(f"{sys.executable} -c '' && true")
            process = multiprocessing.get_context("spawn").Process(target=nothing)
            process.start()
            process.join()
        """
    )
    assert found.code == 0, found.errors
    assert found.one("discovery_end")["processes_started"] == 3


def test_a_script_that_puts_another_program_in_its_place_is_told(under_discovery):
    found = under_discovery(
        """
        import os, sys
        if "again" not in sys.argv:
            os.execvp("sh", ["sh", "-c", f"{sys.executable} {sys.argv[0]} again"])
        print("ran")
        """
    )
    assert (found.code, found.output) == (0, "ran\n")
    assert "replaced itself with another program" in found.one("message")["text"]


def test_a_script_that_asks_for_input_is_told_that_there_is_none(under_discovery):
    assert "standard input is empty" in under_discovery("input()").one("discovery_end")["exception"]


def test_a_thread_that_goes_on_calling_a_model_does_not_spoil_the_end(under_discovery):
    found = under_discovery(
        """
        import threading, time
        import torch
        layer, x = torch.nn.Linear(256, 256), torch.ones(64, 256)
        calls = threading.Semaphore(0)
        def loop():
            while True: layer(x); calls.release(); time.sleep(0.001)
        for _ in range(4): threading.Thread(target=loop, daemon=True).start()
        for _ in range(20): calls.acquire()
        """,
        forked=True,
    )
    assert (found.code, found.errors) == (0, "")
    assert found.models[0]["calls"] > 4


def test_a_script_without_torch_ends_with_a_word_about_it(under_discovery):
    end = under_discovery("print(1)").one("discovery_end")
    assert (end["models"], end["hook_lost"], end["exception"]) == (0, False, None)


def test_random_numbers_are_the_same_in_every_run_unless_left_alone(under_discovery):
    program = "import random; print(random.random())"
    plain = under_discovery(program).output
    assert under_discovery(program).output == plain
    assert under_discovery(program, seed=5).output != plain
    assert under_discovery(program, seed=None).output != under_discovery(program, seed=None).output


def test_scripts_of_a_foreign_corpus_find_its_parser_and_labels(under_discovery, tmp_path):
    (tmp_path / "labels").mkdir()
    (tmp_path / "labels" / "bert_google_12ab.txt").write_text("author::google test_group::daily,monthly\n")
    found = under_discovery(
        """
        from mlagility.parser import parse
        from turnkeyml.parser import parse as other
        from mlagility.common.labels import load_from_cache
        print(parse(["batch_size", "alpha"]), other(["kvcache"]), load_from_cache(".", "bert_google_12ab"))
        """,
        "--batch_size", "8", "--kvcache", "true", "--own", "1",
    )  # fmt: skip
    assert found.errors == ""
    assert found.output == "[8, 2.2] [True] {'author': ['google'], 'test_group': ['daily', 'monthly']}\n"


def test_an_installed_package_goes_before_ours(under_discovery, tmp_path):
    (tmp_path / "mlagility").mkdir()
    (tmp_path / "mlagility" / "__init__.py").write_text("")
    (tmp_path / "mlagility" / "parser.py").write_text("real = 1\n")
    assert under_discovery("import mlagility.parser; print(mlagility.parser.real)").output == "1\n"


@pytest.mark.parametrize(
    ("config", "words"),
    [("", "not set"), ('{"stream": "x"}', "no \"models\""), ('{"stream": "x", "models": {"mode": "fly"}}', "mode"),
     ('{"stream": "x", "models": {"mood": 1}}', "mood"), ('{"stream": "x", "models": {"mode": "measure"}}', "identity")],
)  # fmt: skip
def test_a_wrong_configuration_is_told(tmp_path, config, words):
    env = {**os.environ, "BENCHPROBE_CONFIG": config}
    done = subprocess.run(
        [sys.executable, "-m", "benchmodels", "x.py"], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert words in done.stderr


def test_a_script_that_fails_keeps_what_was_found_and_shows_no_frame_of_ours(under_discovery, programs_folder):
    found = under_discovery(programs_folder / "endings.py", "in_model", forked=True)
    plain = subprocess.run(
        [sys.executable, str(programs_folder / "endings.py"), "in_model"], capture_output=True, text=True
    )
    assert found.code == plain.returncode == 1
    assert found.errors == plain.stderr
    assert re.search("mat1 and mat2", found.one("discovery_end")["exception"])
    assert [(model["calls"], model["reason"] is None) for model in found.models] == [(1, True), (1, False)]


@pytest.mark.parametrize(("how", "code", "calls"), [("os_exit", 9, [1]), ("late", 7, [1, 1])])
def test_however_the_script_ends_the_last_counts_are_told(under_discovery, programs_folder, how, code, calls):
    found = under_discovery(programs_folder / "endings.py", how, forked=True)
    assert found.code == code
    assert [model["calls"] for model in found.models] == calls
    assert found.one("discovery_end")["models"] == len(calls)


def test_a_script_that_is_killed_leaves_what_was_found(under_discovery, programs_folder):
    found = under_discovery(programs_folder / "endings.py", "kill", forked=True)
    assert found.code == -9
    assert [(model["class"], model["calls"], model["inputs"][0]["shape"]) for model in found.models] == [
        ("Linear", 1, [3, 4])
    ]
    assert found.all("discovery_end") == []


def test_a_forked_child_tells_only_what_it_found_itself(under_discovery, programs_folder):
    found = under_discovery(programs_folder / "endings.py", "fork", forked=True)
    assert found.code == 0, found.errors
    in_main, in_child = found.models
    assert (in_main["calls"], in_main["main_process"], in_main["reason"]) == (2, True, None)
    assert (in_child["calls"], in_child["main_process"]) == (1, False)
    assert "process" in in_child["reason"]
    assert len(found.all("discovery_end")) == 1


def test_plain_python_finds_the_stand_ins_of_mlagility_if_it_is_told_to(tmp_path):
    script = tmp_path / "s.py"
    script.write_text(
        "# labels: author::me\nfrom mlagility.parser import parse\nfrom turnkeyml.parser import parse as other\n"
        "from mlagility.common import labels\nprint(parse(['batch_size']), parse is other, labels.load_from_file(__file__))\n"
    )
    folder = subprocess.run([sys.executable, "-m", "benchmodels.compat"], capture_output=True, text=True).stdout.strip()
    words = [sys.executable, "s.py", "--batch_size", "8"]
    assert subprocess.run(words, cwd=tmp_path, capture_output=True).returncode == 1
    told = {**os.environ, "PYTHONPATH": folder}
    done = subprocess.run(words, cwd=tmp_path, env=told, capture_output=True, text=True)
    assert done.stdout == "[8] True {'author': ['me']}\n", done.stderr
