"""Benchmarks whose benchfile.py says itself how to prepare and run them, through the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import CommandLine
from suite_folder import SuiteFolder

pytestmark = pytest.mark.compat

BENCHFILE = """
from milabench.pack import Package
import milabench.commands as cmd

class Mine(Package):
    def make_env(self):
        return {**super().make_env(), "WHO": self.config["name"]}

    @property
    def argv(self):
        return [*super().argv, "--from-benchfile"]

    @property
    def working_directory(self):
        return self.dirs.code / "inner"

    async def prepare(self):
        await self.execute("mkdir", "-p", self.dirs.data / "set")
        await self.python("-c", "import os; open(os.environ['MILABENCH_DIR_DATA'] + '/set/who', 'w').write(os.environ['WHO'])")

    def build_run_plan(self):
        return cmd.WrapperCommand(cmd.PackCommand(self, *self.argv, lazy=True), "nice", "-n", "1", "python").use_stdout()

__pack__ = Mine
"""
MAIN = """
import json, os, sys, time
said = [sys.argv[1:], os.path.basename(os.getcwd()), os.environ["WHO"], os.environ["MILABENCH_USE_STDOUT"], os.nice(0)]
open(os.environ["MILABENCH_DIR_DATA"] + "/ran", "w").write(json.dumps(said))
table = str.maketrans("abcdef", ":;<=>?")
for step in range(30):  # as voir hides its stream in standard output
    time.sleep(0.01)
    line = json.dumps({"task": "train", "rate": 100.0 + step % 3, "units": "items/s", "time": time.time()})
    print(chr(27) + "[" + (line + chr(10)).encode().hex().translate(table) + "z", end="", flush=True)
"""


@pytest.fixture
def suite(bw: CommandLine, tmp_path: Path) -> SuiteFolder:
    folder = tmp_path / "suite"
    folder.mkdir()
    return SuiteFolder(bw, folder)


def test_a_benchfiles_own_way_is_followed_from_prepare_to_the_result(bw: CommandLine, suite: SuiteFolder) -> None:
    place = suite.add("one", {"main.py": MAIN, "benchfile.py": BENCHFILE}, argv={"--epochs": 3})
    (place / "inner").mkdir()
    assert bw.json("prepare", suite.path, "--use-current-env")["benchmarks"][0]["status"] == "prepared"
    assert (suite.data / "set" / "who").read_text() == "one"
    assert bw.json("prepare", suite.path, "--use-current-env")["benchmarks"][0]["status"] == "reused"
    (job,) = bw.json("plan", suite.path, "--use-current-env")["benchmarks"][0]["jobs"]
    assert job["argv"] == ["nice", "-n", "1", "python", str(place / "main.py"), "--epochs", "3", "--from-benchfile"]
    assert job["cwd"] == str(place / "inner")
    (result,) = bw.json("run", suite.path, "--use-current-env")["results"]
    assert result["status"] == "ok", result
    assert (suite.data / "ran").read_text() == '[["--epochs", "3", "--from-benchfile"], "inner", "one", "1", 1]'
    rates = {m["metric"]: m["value"] for m in result["metrics"]}
    assert 100 <= rates["rate"] <= 102


VOIR_PREPARES = """
from milabench.pack import Package
import milabench.commands as cmd

class Mine(Package):
    async def prepare(self):
        await super().prepare()

    def build_prepare_plan(self):
        return cmd.WrapperCommand(cmd.VoirCommand(cmd.PackCommand(self, "--few", env=self.make_env()), module=True), "python", "show.py")

__pack__ = Mine
"""


def test_a_preparation_under_voir_gets_the_entrys_options_and_variables(bw: CommandLine, suite: SuiteFolder) -> None:
    show = (
        "import json, os, sys\n"
        "at = os.environ['MILABENCH_DIR_DATA']\n"
        "json.dump([sys.argv[1:3], json.load(open(sys.argv[3])), sys.argv[5:], os.environ['WHERE'], json.loads(os.environ['MILABENCH_CONFIG'])['argv']], open(at + '/seen', 'w'))\n"
    )
    files = {"benchfile.py": VOIR_PREPARES, "show.py": show}
    suite.add("one", files, voir={"options": {"stop": 7}}, env={"WHERE": "{milabench_data}"}, argv={"--n": "{arch}"})
    assert bw.json("prepare", suite.path, "--use-current-env")["benchmarks"][0]["status"] == "prepared"
    assert json.loads((suite.data / "seen").read_text()) == [
        ["voir", "--config"],
        {"options": {"stop": 7}},
        ["--few"],
        str(suite.data),
        {"--n": "{arch}"},
    ]


def test_a_preparation_that_fails_says_which_line_and_is_tried_again(bw: CommandLine, suite: SuiteFolder) -> None:
    broken = BENCHFILE.replace('"mkdir", "-p", ', '"false", ')
    place = suite.add("one", {"benchfile.py": broken})
    (place / "inner").mkdir()
    failed = bw.json("prepare", suite.path, "--use-current-env", code=1)["benchmarks"][0]
    assert failed["status"] == "failed"
    assert "exited with code 1" in failed["detail"]
    (place / "benchfile.py").write_text(
        BENCHFILE.replace("async def prepare(self):", "async def prepare(self):\n        1 / 0")
    )
    failed = bw.json("prepare", suite.path, "--use-current-env", code=1)["benchmarks"][0]
    assert f"{place}/benchfile.py:18: its prepare failed: ZeroDivisionError" in failed["detail"]
    (place / "benchfile.py").write_text(BENCHFILE)
    assert bw.json("prepare", suite.path, "--use-current-env")["benchmarks"][0]["status"] == "prepared"


def test_one_whose_plan_fails_is_a_failed_row_and_the_others_run(bw: CommandLine, suite: SuiteFolder) -> None:
    broken = BENCHFILE.replace("def build_run_plan(self):", "def build_run_plan(self):\n        1 / 0")
    suite.add("broken", {"benchfile.py": broken}, prepare=False)
    suite.add("sound", prepare=False, stop=5)
    results = bw.json("run", suite.path, "--use-current-env", code=1)["results"]
    assert [(one["benchmark"], one["status"]) for one in results] == [("broken", "failed"), ("sound", "ok")]
    assert "benchfile.py:22: its run failed: ZeroDivisionError" in results[0]["detail"]


def test_validate_says_which_entries_cannot_run_and_why(bw: CommandLine, suite: SuiteFolder) -> None:
    broken = BENCHFILE.replace("def build_run_plan(self):", "def build_run_plan(self):\n        1 / 0")
    suite.add("broken", {"benchfile.py": broken})
    suite.add("lost", {"benchfile.py": "1 / 0\n"})
    suite.add("off", {"benchfile.py": "1 / 0\n"}, enabled=False)
    place = suite.add("sound", {"benchfile.py": "from milabench.pack import Package\n__pack__ = Package\n"})
    suite.entries["sound"]["definition"] += "/benchfile.py"
    suite.entries["nowhere"] = {"definition": "nowhere"}
    suite.write()
    (body,) = bw.json("validate", suite.path)
    assert body["ok"]
    broken_one, lost, nowhere = body["warnings"]
    assert "nowhere cannot run: " in nowhere
    assert f"the folder {place.parent / 'nowhere'} is missing" in nowhere
    assert "broken cannot run: " in broken_one
    assert "benchfile.py:22: its run failed: ZeroDivisionError" in broken_one
    assert "lost cannot run: " in lost
    assert "benchfile.py" in lost
    (job,) = bw.json("plan", suite.path, "--use-current-env", "--select", "sound")["benchmarks"][0]["jobs"]
    assert str(place / "main.py") in job["argv"]


INSTALL = """
from milabench.pack import Package

class Mine(Package):
    async def install(self):
        await super().install()
        await self.pip_install("beta")
        if await self.execute("python", "-c", "import sys; open('made-by', 'w').write(sys.prefix)") != 0:
            raise RuntimeError("no python")

__pack__ = Mine
"""


def test_an_install_of_its_own_goes_into_the_environment_or_leaves_the_old_one(
    bw: CommandLine, suite: SuiteFolder
) -> None:
    files = {"requirements.in": "alpha\n", "benchfile.py": INSTALL}
    place = suite.add("one", files)
    assert bw.json("install", suite.path)["groups"][0]["status"] == "built"
    assert suite.version("alpha", "one")
    assert suite.version("beta", "one")
    assert (place / "made-by").read_text() in [str(p.resolve()) for p in (suite.venv / "one",)]
    assert bw.json("install", suite.path)["groups"][0]["status"] == "reused"
    (place / "benchfile.py").write_text(INSTALL.replace('"beta"', '"no-such-package"'))
    failed = bw.json("install", suite.path, code=1)["groups"][0]
    assert failed["status"] == "failed"
    assert "benchfile.py: its install failed: pip install no-such-package" in failed["detail"]
    assert suite.version("beta", "one"), "the previous environment is gone"
    (place / "benchfile.py").write_text(INSTALL.replace('"python", "-c", "', '"python", "-c", "raise SystemExit(4); '))
    failed = bw.json("install", suite.path, code=1)["groups"][0]
    assert "benchfile.py:9: its install failed: RuntimeError: no python" in failed["detail"]
    (place / "benchfile.py").write_text(INSTALL.replace("self.pip_install", "self.conda_install"))
    failed = bw.json("install", suite.path, code=1)["groups"][0]
    assert "its install asks for conda; name what it needs in requirements.in" in failed["detail"]
    assert suite.version("beta", "one"), "the previous environment is gone"


def test_what_it_installs_is_held_to_the_entrys_constraints(bw: CommandLine, suite: SuiteFolder) -> None:
    files = {"requirements.in": "", "benchfile.py": INSTALL.replace('"beta"', '"alpha"')}
    suite.add("one", files, pip={"constraints": ["alpha<2"]})
    suite.add("two", files)
    bw.json("install", suite.path)
    assert (suite.version("alpha", "one"), suite.version("alpha", "two")) == ("1.0", "2.0")


def test_a_preparation_may_install_too(bw: CommandLine, suite: SuiteFolder) -> None:
    prepare = "from milabench.pack import Package\nclass P(Package):\n    async def prepare(self):\n"
    ways = {"one": "pip_install('gamma')", "two": "conda_install('gamma')", "three": "pip_install('nowhere')"}
    for name, way in ways.items():
        text = f"{prepare}        await self.{way}\n__pack__ = P\n"
        suite.add(name, {"requirements.in": "beta\n", "benchfile.py": text})
    bw("install", suite.path)
    done = {one["name"]: one for one in bw.json("prepare", suite.path, code=1)["benchmarks"]}
    assert {name: one["status"] for name, one in done.items()} == {
        "one": "prepared",
        "two": "failed",
        "three": "failed",
    }
    assert suite.version("gamma", "one") == "1.0"
    assert "asks for conda; name what it needs in requirements.in" in done["two"]["detail"]


STEPS = """
from milabench.pack import Package
import milabench.commands as cmd

class Mine(Package):
    def build_run_plan(self):
        first = cmd.CmdCommand(self, "python", "-c", "import sys; open('first', 'a').write('x'); sys.exit(CODE)")
        return cmd.SequenceCommand(first, cmd.PackCommand(self, *self.argv)).use_stdout()

__pack__ = Mine
"""


def test_steps_run_in_turn_up_to_the_first_that_fails(bw: CommandLine, suite: SuiteFolder) -> None:
    main = MAIN.replace('"WHO"', '"HOME"')
    place = suite.add("sound", {"main.py": main, "benchfile.py": STEPS.replace("CODE", "0")})
    bad = suite.add("broken", {"main.py": main, "benchfile.py": STEPS.replace("CODE", "3")})
    results = {one["benchmark"]: one for one in bw.json("run", suite.path, "--use-current-env", code=1)["results"]}
    assert results["sound"]["status"] == "ok", results["sound"]
    assert (place / "first").read_text() == (bad / "first").read_text() == "x"
    assert 100 <= next(m["value"] for m in results["sound"]["metrics"] if m["metric"] == "rate") <= 102
    assert "exit code 3" in results["broken"]["detail"]
    assert all(m["metric"] != "rate" for m in results["broken"]["metrics"]), "the step after the one that failed ran"
