from __future__ import annotations

import sys
from pathlib import Path

from benchwright.agent.machine.runtimes import ask_interpreter, find_runtimes, own_interpreter


def installed(folder: Path, *names: str) -> str:
    for name in names:
        (folder / f"{name}.dist-info").mkdir(parents=True)
    return str(folder)


def test_runtimes_are_told_from_the_names_of_packages(tmp_path):
    path = installed(tmp_path, "torch-2.6.0+cpu", "onnxruntime_gpu-1.22.0", "onnxruntime-1.20.0", "numpy-2.1.0")
    assert find_runtimes([path]) == {"torch": "2.6.0+cpu", "onnxruntime": "1.22.0"}


def test_runtimes_of_plug_ins_are_listed_with_the_version_of_the_plug_in(tmp_path):
    path = installed(tmp_path, "openvino-2026.1", "fancy_runtime-2.0")
    info = tmp_path / "fancy_runtime-2.0.dist-info"
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fancy-runtime\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[benchmodels.runtimes]\nfancy = fancy_runtime:Fancy\n")
    assert find_runtimes([path]) == {"openvino": "2026.1", "fancy": "2.0"}


def test_the_own_interpreter_is_the_one_that_runs():
    own = own_interpreter()
    assert own.executable == sys.executable
    assert own.version == sys.version.split()[0]


def test_another_interpreter_tells_the_same_about_itself_as_we_do():
    asked = ask_interpreter(sys.executable, "python of the PATH")
    assert asked.trouble is None
    assert (asked.executable, asked.version) == (sys.executable, own_interpreter().version)
    assert asked.runtimes == own_interpreter().runtimes


def test_a_python_that_does_not_start_is_told_with_its_last_words(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no such version >&2\nexit 1\n")
    broken.chmod(0o755)
    assert "no such version" in (ask_interpreter(str(broken), "x").trouble or "")
    assert ask_interpreter(str(tmp_path / "absent"), "x").trouble
