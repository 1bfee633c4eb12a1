"""From an entry with a benchfile.py to the jobs of its run: words, folders, machines and tags as milabench has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from suites import PATHS, jobs_of, planned

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Job
from benchwright.core.system import Node, System
from benchwright.kinds.suite.kind import SuiteKind
from benchwright.kinds.suite.read.suite import refuse_unrunnable
from benchwright.options.table import Options

HEAD = "from milabench.pack import Package\nimport milabench.commands as cmd\nclass P(Package):\n"
TWO = (Node(name="n0", ip="10.0.0.1", main=True, local=True), Node(name="n1", ip="10.0.0.2", user="u"))
EVERYWHERE = (
    "    def build_run_plan(self):\n        return cmd.TorchrunAllNodes(super().build_run_plan()).use_stdout()\n"
)


def bench(folder: Path, methods: str, keys: str = "plan: {method: njobs, n: 1}", **files: str) -> Benchmark:
    """`methods` of its benchfile; the other files by their names, with __ for each slash."""
    place = folder / "suite" / "bench"
    place.mkdir(parents=True)
    (place / "benchfile.py").write_text(f"{HEAD}    pass\n{methods}\n__pack__ = P\n")
    for name, text in (
        {"main.py": ""} | {f"{name.replace('__', '/')}.py": text for name, text in files.items()}
    ).items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    suite = folder / "s.yaml"
    suite.write_text(f"b: {{definition: suite/bench, {keys}}}\n")
    (found,) = SuiteKind().read(str(suite), Options())
    return found


def tag(job: Job) -> Any:
    return json.loads(job.env["MILABENCH_CONFIG"] or "")["tag"]


def test_a_main_script_that_is_a_folder_is_started_as_a_module(tmp_path: Path) -> None:
    files = {"bench____main__": "import voir\n", "voirfile": ""}
    found = bench(tmp_path, "    main_script = 'bench'", "argv: {-a: 1}", **files)
    job = jobs_of(found, gpus=0)[0]
    assert job.argv[1:] == ("-m", "voir", "-m", "bench", "-a", "1"), "without options of its own, voir gets no file"
    assert job.files == {}
    assert job.env["DATA_FD"] == "3"
    assert job.cwd == str(tmp_path / "suite" / "bench")


def test_threads_are_set_as_milabench_does_and_the_entry_may_say_otherwise(tmp_path: Path) -> None:
    """With a plan of its own and without."""
    plan = "    def build_run_plan(self):\n        return cmd.PackCommand(self).use_stdout()\n"
    changed = "    def make_env(self):\n        return {**super().make_env(), 'OMP_NUM_THREADS': 5}\n"
    for number, methods in enumerate(("", plan)):
        assert jobs_of(bench(tmp_path / f"a{number}", methods), gpus=4)[0].env["OMP_NUM_THREADS"] == "16"
        entry = bench(tmp_path / f"b{number}", methods, "env: {OMP_NUM_THREADS: 3}")
        assert jobs_of(entry, gpus=4)[0].env["OMP_NUM_THREADS"] == "3"
        assert jobs_of(bench(tmp_path / f"c{number}", methods + changed), gpus=4)[0].env["OMP_NUM_THREADS"] == "5"


def test_benchmate_is_on_the_path_only_where_an_environment_is_not_ours_and_lacks_it(tmp_path: Path) -> None:
    beside = tmp_path / "benchmate"
    (beside / "benchmate").mkdir(parents=True)
    (beside / "benchmate" / "__init__.py").write_text("")
    found = bench(tmp_path, "", main="import benchmate.ux\n")
    assert "PYTHONPATH" not in jobs_of(found)[0].env
    prefix = tmp_path / "theirs"
    site = prefix / "lib" / "python3.11" / "site-packages"
    site.mkdir(parents=True)
    paths = msgspec.structs.replace(PATHS, python=str(prefix / "bin" / "python"))
    assert jobs_of(found, paths=paths)[0].env["PYTHONPATH"] == str(beside)
    (site / "benchmate").mkdir()
    assert "PYTHONPATH" not in jobs_of(found, paths=paths)[0].env, "their own benchmate is hidden"


def test_the_usual_plan_starts_in_the_folder_of_its_script_and_on_the_main_machine(tmp_path: Path) -> None:
    keys = "plan: {method: per_gpu}, num_machines: 2"
    found = bench(tmp_path, "    main_script = 'inner/go.py'", keys, inner__go="import voir\n")
    jobs = jobs_of(found, gpus=2, system=System(nodes=TWO))
    assert [(job.node, tag(job)) for job in jobs] == [("n0", ["b", "D0"]), ("n0", ["b", "D1"])]
    assert {job.cwd for job in jobs} == {str(tmp_path / "suite" / "bench" / "inner")}
    assert jobs[0].argv[-1] == str(tmp_path / "suite" / "bench" / "inner" / "go.py")


def test_a_script_that_hands_its_figures_to_benchmate_is_run_by_voir(tmp_path: Path) -> None:
    beside = tmp_path / "benchmate" / "benchmate"
    beside.mkdir(parents=True)
    (beside / "__init__.py").write_text("")
    found = bench(tmp_path, "", "voir: {options: {stop: 7}}", main="from benchmate.observer import BenchObserver\n")
    job = jobs_of(found, gpus=0)[0]
    assert job.argv[1:3] == ("-m", "voir")
    (config,) = job.files.values()
    assert json.loads(config) == {"options": {"stop": 7}}


def test_a_plan_over_machines_keeps_its_words_and_tags(tmp_path: Path) -> None:
    keys = "plan: {method: njobs, n: 1}, num_machines: 2, voir: {options: {stop: 7}}"
    jobs = jobs_of(bench(tmp_path, EVERYWHERE, keys), gpus=2, system=System(nodes=TWO))
    assert [(job.node, tag(job)) for job in jobs] == [("n0", ["b", "n0"]), ("n1", ["b", "n1", "nolog"])]
    assert [(job.id, job.reports) for job in jobs] == [("b.n0", "always"), ("b.n1.nolog", "never")]
    words = " ".join(jobs[1].argv).replace(PATHS.venv, "VENV")
    assert words.startswith("VENV/b/bin/python -m benchmate.benchrun --nnodes=2 --rdzv-backend=static ")
    assert (
        "--node-rank=1 --local-addr=10.0.0.2 --rdzv-conf=rank=1 --nproc-per-node=gpu -- VENV/b/bin/voir --config"
        in words
    )
    assert [json.loads(text) for text in jobs[1].files.values()] == [{"options": {"stop": 7}}]


def test_processes_with_one_tag_have_files_of_their_own_and_one_of_them_has_to_report(tmp_path: Path) -> None:
    """milabench lets a helper beside the main program write to the same file."""
    plan = (
        "    def build_run_plan(self):\n"
        "        return cmd.ListCommand(cmd.CmdCommand(self, 'helper'), super().build_run_plan())\n"
    )
    jobs = jobs_of(bench(tmp_path / "a", plan), gpus=0)
    assert [(job.id, tag(job), job.reports) for job in jobs] == [
        ("b.0", ["b", "0"], "perhaps"),
        ("b.0.1", ["b", "0", "1"], "perhaps"),
    ]
    assert len({job.stream for job in jobs}) == 2
    assert {job.barrier for job in jobs} == {None}, "a helper never arrives where the others wait for it"


def test_jobs_whose_plan_gives_them_one_tag_all_report(tmp_path: Path) -> None:
    found = bench(tmp_path, EVERYWHERE, "plan: {method: njobs, n: 2}, num_machines: 2")
    jobs = jobs_of(found, gpus=2, system=System(nodes=TWO))
    assert [job.id for job in jobs] == ["b.n0", "b.n1.nolog", "b.n0.1", "b.n1.nolog.1"]
    assert [job.barrier.rank for job in jobs if job.barrier is not None] == [0, 1]


def test_the_environments_python_is_the_one_that_is_used(tmp_path: Path) -> None:
    plan = "    def build_run_plan(self):\n        return cmd.CmdCommand(self, f'{self.dirs.venv}/bin/python', '-m', 'tune')\n"
    assert jobs_of(bench(tmp_path, plan), gpus=0)[0].argv == (f"{PATHS.venv}/b/bin/python", "-m", "tune")


def test_an_argument_is_resolved_with_everything_it_may_hold(tmp_path: Path) -> None:
    plan = (
        "    def build_run_plan(self):\n"
        "        return cmd.CmdCommand(self, 'go', self.resolve_argument('--n', 1), self.resolve_argument('--no', 4))\n"
    )
    found = bench(tmp_path, plan, "argv: {--n: 'auto({n_worker}, 8)', --batch: 'auto_batch(16)'}")
    assert jobs_of(found, gpus=0)[0].argv == ("go", "8", "4")


def test_variables_of_the_benchfile_stay_as_they_are_and_those_of_the_entry_are_filled(tmp_path: Path) -> None:
    methods = (
        "    def make_env(self):\n"
        "        return {**super().make_env(), 'JSON': '{\"a\": {\"b\": \"{arch}\"}}', 'SAME': 'made'}\n"
        "    def build_run_plan(self):\n"
        "        import os\n"
        "        os.environ['SET_WHILE_PLANNING'] = 'yes'\n"
        "        return cmd.PackCommand(self)\n"
    )
    job = jobs_of(bench(tmp_path, methods, "env: {OWN: '{arch}', SAME: entry}"), gpus=0)[0]
    assert job.env["JSON"] == '{"a": {"b": "{arch}"}}'
    assert (job.env["OWN"], job.env["SAME"], job.env["SET_WHILE_PLANNING"]) == ("cpu", "entry", "yes")
    assert json.loads(job.env["MILABENCH_CONFIG"] or "")["name"] == "b"


def test_what_benchwright_does_not_know_is_a_reason_and_the_others_run(tmp_path: Path) -> None:
    plan = "    def build_run_plan(self):\n        from milabench.commands.kites import Kite\n"
    sound = msgspec.structs.replace(bench(tmp_path / "sound", ""), name="sound")
    plan_of_both = planned(bench(tmp_path / "other", plan), sound, gpus=0)
    ((_, why),) = plan_of_both.skipped.values()
    assert "benchfile.py:6: it uses milabench.commands.kites, which benchwright does not know" in why
    assert len(plan_of_both.launches) == 1


def test_a_script_may_be_missing_where_install_brings_it_or_the_plan_needs_none(tmp_path: Path) -> None:
    install = "    main_script = 'cloned/go.py'\n    async def install(self):\n        await self.execute('git', 'clone', 'it')\n"
    found = bench(tmp_path / "a", install)
    assert found.notes == (
        f"there is no script {tmp_path / 'a' / 'suite' / 'bench' / 'cloned/go.py'} before `install`",
    )
    refuse_unrunnable([found], before_install=True)
    with pytest.raises(InvalidInput, match="there is no script"):
        refuse_unrunnable([found])
    words = "    main_script = 'none.py'\n    def build_run_plan(self):\n        return cmd.CmdCommand(self, 'go')\n"
    without = bench(tmp_path / "b", words)
    assert without.notes == ()
    refuse_unrunnable([without])
