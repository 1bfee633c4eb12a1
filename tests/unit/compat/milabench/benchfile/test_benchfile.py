"""What is read from a benchmark's folder, and which methods of a foreign benchfile.py are obeyed."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchwright.compat.milabench.benchfile import benchfile as reading
from benchwright.compat.milabench.benchfile import child
from benchwright.compat.milabench.benchfile.benchfile import BenchFacts, read_benchfile
from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.folder_facts import Phase

HEAD = "from milabench.pack import Package\n"


def write(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    return folder


def facts_of(tmp_path: Path, benchfile: str, **more: str) -> BenchFacts:
    files = {"benchfile.py": benchfile, "main.py": "", "prepare.py": ""} | more
    return read_benchfile(write(tmp_path / "bench", files))


def refused(facts: BenchFacts, entry: dict[str, object] | None = None) -> InvalidInput:
    error = facts.refusal(entry or {})
    assert error is not None
    return error


def test_without_a_benchfile_the_usual_names_hold(tmp_path: Path) -> None:
    facts = read_benchfile(write(tmp_path / "bench", {"main.py": "", "prepare.py": ""}))
    assert (facts.requirements, facts.prepare_script, facts.main_script) == (
        ("requirements.in",),
        "prepare.py",
        "main.py",
    )
    assert facts.refusal() is None
    assert not facts.uses_voir


def test_a_folder_that_is_not_there_yet_has_the_usual_names(tmp_path: Path) -> None:
    facts = read_benchfile(tmp_path / "cloned later")
    assert (facts.prepare_script, facts.main_script, facts.refusal()) == ("prepare.py", "main.py", None)


def test_where_there_is_nothing_to_prepare_there_is_no_script_for_it(tmp_path: Path) -> None:
    assert read_benchfile(write(tmp_path / "bench", {"main.py": ""})).prepare_script is None


def test_the_template_with_methods_that_only_call_super_is_taken(tmp_path: Path) -> None:
    facts = facts_of(
        tmp_path,
        """
        from milabench.pack import Package

        SOURCE = "src"

        class TheBenchmark(Package):
            # may be empty
            base_requirements = "requirements.in"
            prepare_script = "prepare.py"
            main_script = f"{SOURCE}/train.py"

            def make_env(self):
                # nothing
                return super().make_env()

            async def install(self):
                await super().install()  # installs the requirements

            async def run(self, *args, **words):
                "as it is"
                return await super().run(*args, **words)

            @property
            def argv(self):
                return super().argv

        __pack__ = TheBenchmark
        """,
    )
    assert (facts.main_script, facts.overrides, facts.refusal()) == ("src/train.py", (), None)


@pytest.mark.parametrize(
    ("head", "base"),
    [
        ("from milabench.pack import Package", "Package"),
        ("from milabench.pack import BasePackage as B", "B"),
        ("import milabench.pack", "milabench.pack.Package"),
        ("import milabench.pack as p", "p.Package"),
        ("from milabench import pack", "pack.Package"),
    ],
)
def test_milabenchs_class_is_known_by_every_name(tmp_path: Path, head: str, base: str) -> None:
    facts = facts_of(tmp_path, f"{head}\nclass A({base}):\n    main_script = 'a.py'\n__pack__ = A\n")
    assert facts.main_script == "a.py"


def test_attributes_of_a_base_in_the_same_file_hold_unless_changed(tmp_path: Path) -> None:
    code = (
        HEAD
        + "class Base(Package):\n    main_script = 'base.py'\n    prepare_script = None\n"
        + "class Mine(Base):\n    base_requirements = ['a.in', 'b.in']\n    main_script = 'mine.py'\n__pack__ = Mine\n"
    )
    facts = facts_of(tmp_path, code)
    assert (facts.main_script, facts.prepare_script, facts.requirements) == ("mine.py", None, ("a.in", "b.in"))


def test_what_is_computed_is_known_by_running_the_file_in_its_folder(tmp_path: Path) -> None:
    code = (
        "import os, sys\nprint('to be ignored')\nimport beside\n"
        + HEAD
        + "class A(Package):\n    main_script = os.path.join('x', beside.NAME)\n"
        + "    prepare_script = open('prepare.txt').read()\n__pack__ = A\n"
    )
    more = {"beside.py": "NAME = 'train.py'", "prepare.txt": "prepare.py", "x/train.py": "import voir\n"}
    facts = facts_of(tmp_path, code, **more)
    assert (facts.main_script, facts.prepare_script, facts.refusal()) == ("x/train.py", "prepare.py", None)
    assert facts.uses_voir


def test_a_class_that_is_made_is_known_by_running_it_and_its_methods_too(tmp_path: Path) -> None:
    code = (
        HEAD
        + "def make():\n    class A(Package):\n        main_script = 'm.py'\n        def make_env(self):\n            return {}\n"
        + "    return A\n__pack__ = make()\n"
    )
    facts = facts_of(tmp_path, code)
    assert (facts.main_script, facts.overrides) == ("m.py", ("make_env",))
    assert facts.overridden[0].line == 5


@pytest.mark.parametrize(
    ("method", "phase"),
    [
        ("    def build_run_plan(self):\n        return VoirCommand(super().build_run_plan())\n", "run"),
        ("    def make_env(self):\n        return {**super().make_env(), 'A': '8'}\n", "run"),
        ("    @property\n    def argv(self):\n        return [*super().argv, '--more']\n", "prepare"),
        ("    async def prepare(self):\n        pass\n", "prepare"),
        ("    async def install(self):\n        await self.pip_install('x')\n", "install"),
    ],
)
def test_what_it_overrides_is_obeyed_unless_the_entry_says_what_to_do(
    tmp_path: Path, method: str, phase: Phase
) -> None:
    facts = facts_of(tmp_path, f"{HEAD}class A(Package):\n{method}__pack__ = A\n")
    assert facts.refusal() is None
    assert facts.follows(phase, {})
    assert not facts.follows(phase, {"x-benchfile": "attributes"})
    instead: dict[Phase, dict[str, object]] = {
        "run": {"launcher": "torchrun"},
        "prepare": {"prepare": "get.py"},
    }
    assert facts.follows(phase, instead.get(phase, {})) == (phase == "install")


def test_pinning_in_its_own_way_is_noted_and_no_reason_to_refuse(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, f"{HEAD}class A(Package):\n    async def pin(self):\n        x()\n__pack__ = A\n")
    assert facts.refusal() is None
    assert "benchfile.py:3" in facts.notes[0]


def test_methods_of_its_own_do_nothing_and_are_no_override(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, f"{HEAD}class A(Package):\n    def shape(self):\n        return 3\n__pack__ = A\n")
    assert facts.overrides == ()


@pytest.mark.parametrize(
    ("code", "what", "line"),
    [
        ("class A:\n  def\n", "not Python", 2),
        ("x = 1\n", "sets no __pack__", None),
        ("__pack__ = 3\n", "no class", None),
        ("import nowhere_to_be_found\n__pack__ = nowhere_to_be_found.A\n", "ModuleNotFoundError", 1),
        ("import sys\nsys.exit(3)\n__pack__ = f()\n", "SystemExit", 2),
    ],
)
def test_a_benchfile_that_cannot_be_used_is_refused_with_its_place(
    tmp_path: Path, code: str, what: str, line: int | None
) -> None:
    error = refused(facts_of(tmp_path, code))
    assert what in error.what
    assert error.line == line
    assert error.where == str(tmp_path / "bench" / "benchfile.py")


def test_a_benchfile_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "TIME_LIMIT_S", 0.5)
    error = refused(facts_of(tmp_path, f"{HEAD}while True: pass\n__pack__ = f()\n"))
    assert "took longer than" in error.what


def test_the_stand_in_for_milabench_is_seen_by_the_benchfile_only() -> None:
    assert not any("compat_modules" in place for place in sys.path)
    with pytest.raises(ModuleNotFoundError):
        __import__("milabench")


@pytest.mark.parametrize(
    ("files", "uses"),
    [
        ({"main.py": "import time\nimport voir\n"}, True),
        ({"main.py": "    from voir.helpers import iterate\n"}, True),
        ({"main.py": "import voirs\n# import voir\n"}, False),
        ({"main.py": "", "voirfile.py": ""}, True),
    ],
)
def test_a_folder_uses_voir_if_it_has_a_voirfile_or_imports_it(
    tmp_path: Path, files: dict[str, str], uses: bool
) -> None:
    assert read_benchfile(write(tmp_path / "bench", files)).uses_voir is uses


def test_benchmate_is_taken_from_beside_the_benchmarks(tmp_path: Path) -> None:
    main = "from benchmate.observer import BenchObserver\n"
    write(tmp_path / "benchmate", {"benchmate/__init__.py": "", "pyproject.toml": "[project]\n"})
    facts = read_benchfile(write(tmp_path / "benchmarks", {"a/main.py": main}) / "a")
    assert (facts.benchmate, facts.refusal()) == (str(tmp_path / "benchmate"), None)
    deeper = read_benchfile(write(tmp_path / "benchmarks", {"retired/b/main.py": main}) / "retired" / "b")
    assert (deeper.benchmate, deeper.refusal()) == (str(tmp_path / "benchmate"), None)


def test_a_benchmate_that_is_nowhere_is_refused_with_the_places_where_it_was_sought(tmp_path: Path) -> None:
    main = "import time\nfrom benchmate.observer import BenchObserver\n"
    error = refused(read_benchfile(write(tmp_path / "benchmarks", {"a/main.py": main}) / "a"))
    assert (error.where, error.line) == (str(tmp_path / "benchmarks" / "a" / "main.py"), 2)
    assert f"neither in {tmp_path / 'benchmate'} nor in {tmp_path.parent / 'benchmate'}" in error.what
    assert f"copy the folder benchmate of milabench's repository to {tmp_path / 'benchmate'}" in (error.remedy or "")
    required = read_benchfile(write(tmp_path / "b", {"main.py": main, "requirements.in": "benchmate @ file:x\n"}))
    assert (required.benchmate, required.refusal()) == (None, None)
    plan = f"{HEAD}from milabench.commands import TorchrunAllGPU\n__pack__ = Package\n"
    started = read_benchfile(write(tmp_path / "d", {"main.py": "", "benchfile.py": plan}))
    assert "uses benchmate" in refused(started).what
    assert started.refusal({"launcher": "torchrun"}) is None
    tried = read_benchfile(write(tmp_path / "c", {"main.py": "try:\n    import benchmate\nexcept ImportError: pass\n"}))
    assert (tried.benchmate, tried.refusal()) == (None, None)


@pytest.mark.parametrize(
    "files",
    [
        {"benchfile.py": f"{HEAD}class A(Package):\n    main_script = 'b'\n__pack__ = A\n", "b/__main__.py": "import benchmate\n"},
        {"benchfile.py": f"{HEAD}from milabench.commands import TorchrunAllGPU\n__pack__ = Package\n", "main.py": ""},
        {"main.py": "def f():\n    from benchmate.observer import BenchObserver\n"},
    ],
)  # fmt: skip
def test_benchmate_is_needed_by_modules_functions_and_torchrun(tmp_path: Path, files: dict[str, str]) -> None:
    assert "uses benchmate" in refused(read_benchfile(write(tmp_path / "a", files))).what


def test_many_entries_of_one_folder_read_it_once(tmp_path: Path) -> None:
    facts = facts_of(tmp_path, f"{HEAD}class A(Package):\n    main_script = 'a.py'\n__pack__ = A\n")
    assert read_benchfile(tmp_path / "bench") is facts
    (tmp_path / "bench" / "benchfile.py").write_text(
        f"{HEAD}class A(Package):\n    main_script = 'bb.py'\n__pack__ = A\n"
    )
    assert read_benchfile(tmp_path / "bench").main_script == "bb.py"


PIECES = [
    "from milabench.pack import Package\n",
    "class A(Package):\n",
    "class B(A):\n",
    "class A(A):\n",
    "    main_script = 'x'\n",
    "    main_script = [1, 'x']\n",
    "    base_requirements = None\n",
    "    base_requirements = {}\n",
    "    def run(self): return 3\n",
    "    def run(self): return super().run()\n",
    "    pass\n",
    "__pack__ = A\n",
    "__pack__ = B\n",
    "import milabench.pack as p\n",
    "\x00",
    "é = 1\n",
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=8))
def test_any_benchfile_gives_facts_or_a_placed_refusal(
    pieces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_run", lambda facts, path: facts)  # running is tested above, and takes longer
    facts = facts_of(tmp_path, "".join(pieces))
    error = facts.refusal()
    assert error is None or error.where == str(tmp_path / "bench" / "benchfile.py")
    assert isinstance(facts.main_script, str)
    assert all(isinstance(name, str) for name in facts.requirements)
