"""A foreign benchfile.py run in a process of its own: its run plans as words, its way to prepare as actions, its faults."""

from __future__ import annotations

import os
import subprocess
import textwrap
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchwright.compat.milabench.benchfile import child
from benchwright.compat.milabench.benchfile.child import Action, PlannedProcess, ask_benchfile
from benchwright.core.errors import InvalidInput

HEAD = "from milabench.pack import Package\nimport milabench.commands as cmd\n"
SHARED = Path(__file__).parents[6] / "shared" / "compat" / "milabench-folders" / "benchmarks"


def benchfile(folder: Path, body: str, before: str = "") -> str:
    folder.mkdir(exist_ok=True)
    (folder / "main.py").write_text("")
    (folder / "bench").mkdir(exist_ok=True)
    methods = textwrap.indent(textwrap.dedent(body), "    ")
    (folder / "benchfile.py").write_text(f"{HEAD}{before}class Mine(Package):\n    pass\n{methods}\n__pack__ = Mine\n")
    return str(folder / "benchfile.py")


def request(
    folder: str, *, gpus: int = 0, nodes: int = 1, plan: str = "njobs", options: Any = None, **more: Any
) -> dict[str, Any]:
    machines = [{"name": f"n{i}", "ip": f"10.0.0.{i}", "main": i == 0} for i in range(nodes)]
    config = {
        "name": "b",
        "definition": folder,
        "dirs": {name: f"/base/{name}" for name in ("venv", "data", "runs", "extra", "cache", "base")},
        "tag": ["b"],
        "plan": {"method": plan, "n": 1},
        "argv": {"--epochs": 3, "--fast": True, "--none": None},
        "num_machines": nodes,
        "system": {"nodes": machines, "options": options or {}},
        "voir": {"options": {"stop": 60}},
        **more,
    }
    return {"config": config, "variables": {"A": "1"}, "devices": list(range(gpus))}


def planned(path: str, **options: Any) -> list[PlannedProcess]:
    answer = ask_benchfile(path, "run", request(os.path.dirname(path), **options), fill=lambda word: f"<{word}>")
    return msgspec.convert(answer["processes"], list[PlannedProcess])


def words(path: str, **options: Any) -> list[str]:
    folder = os.path.dirname(path)
    return [" ".join(one.argv).replace(folder, "DIR") for one in planned(path, **options)]


VOIR = "/base/venv/bin/voir --config @voir-config@ DIR/main.py --epochs 3 --fast"


def test_the_usual_plan_is_the_main_script_under_voir(tmp_path: Path) -> None:
    path = benchfile(tmp_path, "")
    assert words(path) == [VOIR]
    assert words(path, gpus=2, plan="per_gpu") == [VOIR, VOIR]
    assert [one.tag for one in planned(path, gpus=2, plan="per_gpu")] == [("b", "D0"), ("b", "D1")]


RUN = "/base/venv/bin/benchrun"
COMMANDS = {  # what a plan is made of → the words of its process with two devices
    "cmd.PackCommand(self, *self.argv, lazy=True)": "DIR/main.py --epochs 3 --fast",
    "cmd.PackCommand(self, self.dirs.code / 'bench', '-x')": "-m DIR/bench -x",
    "cmd.PackCommand(self, '-x', cwd='/elsewhere')": "DIR/main.py -x",
    "cmd.CmdCommand(self, 'run', 'it')": "run it",
    "cmd.CmdCommand(self, 'python', self.dirs.code / 'x.py', 1)": "python DIR/x.py 1",
    "cmd.SimpleCommand(self, 'more')": "--epochs 3 --fast more",
    "cmd.VoidCommand(self)": "true",
    "cmd.ActivatorCommand(cmd.PackCommand(self, '-a'))": "DIR/main.py -a",
    "cmd.WrapperCommand(cmd.PackCommand(self, '-a'), 'nice', '-n', 5)": "nice -n 5 DIR/main.py -a",
    "cmd.WorkingDir(cmd.PackCommand(self, '-a'))": "DIR/main.py -a",
    "cmd.DockerRunCommand(cmd.PackCommand(self, '-a'), None)": "DIR/main.py -a",
    "cmd.SSHCommand(cmd.PackCommand(self, '-a'), '10.0.0.0', user='me', key='k', port=2)": "DIR/main.py -a",
    "cmd.VoirCommand(cmd.PackCommand(self, '-a'), '--dash', module=True)": "voir --config @voir-config@ --dash DIR/main.py -a",
    "cmd.TorchrunAllGPU(cmd.PackCommand(self, '-a'))": f"{RUN} --nproc-per-node=gpu -- DIR/main.py -a",
    "cmd.TorchRunCommand(cmd.CmdCommand(self, 'my.module'), module=True)": f"{RUN} --nproc-per-node=gpu -m my.module",
    "cmd.TorchrunAllGPU(cmd.CmdCommand(self, 'my.module'), '--x')": f"{RUN} --x --nproc-per-node=gpu -m -- my.module",
    "cmd.TorchrunAllGPU(cmd.CmdCommand(self, 'python', 'x.py'))": f"{RUN} --nproc-per-node=gpu --no-python -- python x.py",
    "cmd.TorchRunCommand(cmd.VoirCommand(cmd.PackCommand(self, '-a'), module=True), module=True)": (
        f"{RUN} --nproc-per-node=gpu -m voir --config @voir-config@ DIR/main.py -a"
    ),
    "cmd.AccelerateLaunchCommand(cmd.PackCommand(self, '-a'), 0, '--last')": (
        "accelerate launch --mixed_precision=bf16 --dynamo_backend=no --machine_rank=0 --num_machines=1 --multi_gpu"
        " --gradient_accumulation_steps=1 --num_cpu_threads_per_process=4 --main_process_ip=10.0.0.0"
        " --main_process_port=29400 --num_processes=2 --last DIR/main.py -a"
    ),
}


def test_each_command_has_the_words_of_milabench(tmp_path: Path) -> None:
    path = benchfile(tmp_path, f"def build_run_plan(self):\n    return cmd.ListCommand({', '.join(COMMANDS)})\n")
    assert dict(zip(COMMANDS, words(path, gpus=2), strict=True)) == COMMANDS
    unwrapped = dict(zip(COMMANDS, words(path, gpus=1), strict=True))
    assert unwrapped["cmd.TorchrunAllGPU(cmd.PackCommand(self, '-a'))"] == "DIR/main.py -a"
    assert unwrapped["cmd.TorchRunCommand(cmd.CmdCommand(self, 'my.module'), module=True)"] == "my.module"


MEETING = (
    "--nnodes=2 --rdzv-backend=static --rdzv-endpoint=10.0.0.0:29400 --master-addr=10.0.0.0 "
    "--master-port=29400 --local-ranks-filter=0"
)


def test_torchrun_over_machines_meets_at_the_main_one(tmp_path: Path) -> None:
    path = benchfile(
        tmp_path, "def build_run_plan(self):\n    return cmd.TorchrunAllNodes(super().build_run_plan()).use_stdout()\n"
    )
    assert words(path, gpus=1) == [VOIR]
    first, second = planned(path, gpus=2, nodes=2)
    for rank, process in enumerate((first, second)):
        assert " ".join(process.argv[1:10]) == (
            f"{MEETING} --node-rank={rank} --local-addr=10.0.0.{rank} --rdzv-conf=rank={rank}"
        )
        assert process.argv[10] == "--nproc-per-node=gpu"
        assert process.use_stdout
    assert (first.node_name, first.tag, first.logs) == ("n0", ("b", "n0"), True)
    assert (second.node_name, second.tag, second.logs) == ("n1", ("b", "n1", "nolog"), False)
    other = {"torchrun": {"port": 1234, "backend": "c10d"}}
    chosen = words(path, gpus=2, options=other)[0]
    assert "--nnodes=1 --rdzv-backend=c10d --rdzv-endpoint=10.0.0.0:1234" in chosen


OWN_LAUNCHER = """
class Launcher(cmd.TorchrunAllGPU):
    @property
    def executable(self):
        return f"{self.binfolder}/bin/python"
    def should_wrap(self):
        return True
    def __init__(self, pack, *words, **options):
        super().__init__(pack, "-m", "tune", "run", *words, module=False, **options)

class Everywhere(cmd.TorchrunAllNodes):
    def __init__(self, executor, *words, **options):
        cmd.ForeachNode.__init__(self, cmd.TorchrunAllNodes.make_base_executor(Launcher, executor, *words, **options))
    def make_new_node_executor(self, rank, node, base):
        return cmd.WorkingDir(super().make_new_node_executor(rank, node, base))
"""


def test_a_launcher_of_its_own_stands_on_milabenchs(tmp_path: Path) -> None:
    body = "def build_run_plan(self):\n    return Everywhere(cmd.SimpleCommand(self)).use_stdout()\n"
    path = benchfile(tmp_path, body, before=OWN_LAUNCHER)
    argv = {"--config": "c.yaml", "{milabench_code}/recipe.py": True}  # a word alone comes before the options
    (alone,) = words(path, gpus=1, argv=argv)
    assert alone.startswith("/base/venv/bin/python -m tune run --nnodes=1 --rdzv-backend=static")
    assert alone.endswith("--nproc-per-node=gpu -- {milabench_code}/recipe.py --config c.yaml")
    both = planned(path, gpus=2, nodes=2, argv=argv)
    assert [" ".join(one.argv[4:13]) for one in both] == [
        f"{MEETING} --node-rank={rank} --local-addr=10.0.0.{rank} --rdzv-conf=rank={rank}" for rank in (0, 1)
    ]
    assert {one.cwd for one in both} == {str(tmp_path)}


def test_what_slurm_would_spread_is_the_command_itself_on_one_machine(tmp_path: Path) -> None:
    before = "from milabench.commands.srun import ForeachSrun, TorchrunSrun\n"
    path = benchfile(
        tmp_path, "def build_run_plan(self):\n    return TorchrunSrun(cmd.PackCommand(self))\n", before=before
    )
    assert words(path, gpus=1) == ["DIR/main.py"]
    ray = "from milabench.commands.ray import RayCluster\n"
    body = "def build_run_plan(self):\n    return RayCluster(self) if self.config['num_machines'] > 1 else cmd.PackCommand(self)\n"
    other = benchfile(tmp_path / "ray", body, before=ray)
    assert words(other) == ["DIR/main.py"]
    with pytest.raises(
        InvalidInput, match=r"it uses milabench\.commands\.ray\.RayCluster, which benchwright does not know"
    ):
        planned(other, nodes=2)
    with pytest.raises(InvalidInput, match=r"it uses milabench\.commands\.srun on several machines, which needs Slurm"):
        planned(path, gpus=2, nodes=2)


def test_a_plan_that_names_its_machines_runs_on_them(tmp_path: Path) -> None:
    body = """
        def build_run_plan(self):
            nodes = self.config["system"]["nodes"]
            packs = [self.copy({"tag": [*self.config["tag"], node["name"]]}) for node in nodes]
            return cmd.ListCommand(*[
                cmd.SSHCommand(host=node["ip"], executor=cmd.DockerRunCommand(cmd.AccelerateLaunchCommand(pack, rank=rank), None))
                for rank, (node, pack) in enumerate(zip(nodes, packs))
            ])
    """
    path = benchfile(tmp_path, body)
    both = planned(path, gpus=2, nodes=2)
    assert [(one.node_name, one.node_rank) for one in both] == [("n0", 0), ("n1", 1)]
    assert ["--machine_rank=1" in one.argv for one in both] == [False, True]
    far = benchfile(
        tmp_path / "far", "def build_run_plan(self):\n    return cmd.SSHCommand(cmd.PackCommand(self), '10.9.9.9')\n"
    )
    with pytest.raises(InvalidInput, match=r"ValueError: ssh to 10\.9\.9\.9: the system file has no such machine"):
        planned(far)


def test_accelerate_counts_all_devices_of_all_machines(tmp_path: Path) -> None:
    body = "def build_run_plan(self):\n    return cmd.AccelerateAllNodes(cmd.PackCommand(self, '-a'))\n"
    path = benchfile(tmp_path, body)
    assert words(path, gpus=1) == ["DIR/main.py -a"]
    (alone,) = words(path, gpus=2)
    assert "--num_machines=1 --multi_gpu" in alone
    assert "--num_processes=2 DIR/main.py -a" in alone
    assert [line.split("--machine_rank=")[1][0] for line in words(path, gpus=2, nodes=2)] == ["0", "1"]
    assert "--num_processes=4" in words(path, gpus=2, nodes=2)[1]


def test_environment_folder_arguments_and_constructor_are_its_own(tmp_path: Path) -> None:
    body = """
        def __init__(self, config, core=None):
            super().__init__(config, core)
            self.more = "yes"
        def make_env(self):
            return {**super().make_env(), "MORE": self.more, "NUMBER": 3}
        @property
        def argv(self):
            known = [self.resolve_argument("--workers", 1), self.resolve_argument("--absent", 5)]
            return [*super().argv, *known, self.resolve_placeholder(7)]
        @property
        def working_directory(self):
            return self.dirs.code / "bench"
        def build_run_plan(self):
            return cmd.PackCommand(self, *self.argv)
    """
    argv = {"--workers": "auto({n_worker}, 8)", "--": ["a", "b c"]}
    (process,) = planned(benchfile(tmp_path, body), env={"OWN": "{cpu_count}"}, argv=argv)
    assert process.env == {"MORE": "yes", "NUMBER": "3", "OWN": "{cpu_count}"}
    assert process.cwd == str(tmp_path / "bench")
    assert process.argv[1:3] == ("--workers", "auto({n_worker}, 8)")
    assert process.argv[3:] == ("a", "b c", "<auto({n_worker}, 8)>", "5", "7")


def test_a_run_of_its_own_is_noted_for_each_device(tmp_path: Path) -> None:
    body = "async def run(self):\n    await self.voir('main.py', ['-d', self.config['device']], wrapper=['nice'])\n"
    assert words(benchfile(tmp_path, body), gpus=2, plan="per_gpu") == [
        f"nice /base/venv/bin/voir --config @voir-config@ main.py -d {device}" for device in (0, 1)
    ]


def test_a_server_is_told_from_its_client(tmp_path: Path) -> None:
    body = """
        def build_run_plan(self):
            server = cmd.CmdCommand(cmd.ClientServer.new_server_pack(self, False), "serve")
            client = cmd.CmdCommand(cmd.ClientServer.new_client_pack(self), "ask")
            return cmd.ClientServer(self, client, server)
    """
    client, server = planned(benchfile(tmp_path, body))
    assert (client.role, client.argv, server.role, server.argv) == ("client", ("ask",), "server", ("serve",))
    assert client.job == server.job == 0


def test_its_way_to_prepare_is_asked_for_step_by_step(tmp_path: Path) -> None:
    body = """
        async def prepare(self):
            if await self.execute("get", "data", cwd="/data", env={"A": 2}) != 0:
                raise RuntimeError("no data")
            await self.python("-m", "unpack")
    """
    path, asked = benchfile(tmp_path, body), []

    def perform(action: Action) -> int:
        asked.append(action)
        return 0

    ask_benchfile(path, "prepare", request(str(tmp_path)), perform)
    assert [(one.do, one.argv, one.cwd) for one in asked] == [
        ("execute", ("get", "data"), "/data"),
        ("execute", ("python", "-m", "unpack"), str(tmp_path)),
    ]
    assert asked[0].env == {"A": "2"}
    with pytest.raises(InvalidInput, match=r"benchfile.py:8: its prepare failed: RuntimeError: no data"):
        ask_benchfile(path, "prepare", request(str(tmp_path)), lambda action: 1)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("def build_run_plan(self):\n    import os; os._exit(3)\n", "gave no answer"),
        ("def build_run_plan(self):\n    raise SystemExit(2)\n", "benchfile.py:6: its run failed: SystemExit: 2"),
        ("def build_run_plan(self):\n    return 3\n", "gave 3, which is no command"),
        ("def build_run_plan(self):\n    return cmd.Sparkle(self)\n", "benchfile.py:6: it uses milabench.commands.Sparkle, which benchwright does not know"),
        ("def build_run_plan(self):\n    from milabench.pack import Bag\n", "benchfile.py:6: it uses milabench.pack.Bag, which benchwright does not know"),
        ("def build_run_plan(self):\n    import milabench.commands.kites\n", "benchfile.py:6: it uses milabench.commands.kites, which benchwright does not know"),
        ("def build_run_plan(self):\n    return cmd.NJobs.many(self)\n", "benchfile.py:6: it uses milabench.commands.NJobs.many, which benchwright does not know"),
        ("def build_run_plan(self):\n    1 / 0\n", "benchfile.py:6: its run failed: ZeroDivisionError"),
        (
            "import heavy_torch\n",
            "benchfile.py:5: its run failed: ModuleNotFoundError: No module named 'heavy_torch'; a benchfile runs in benchwright's own",
        ),
        ("def build_run_plan(self):\n    return [self]\n", "which is no command of milabench"),
        ("def build_run_plan(self):\n    return cmd.ListCommand()\n", "IndexError"),
    ],
)  # fmt: skip
def test_a_plan_that_fails_names_its_line(tmp_path: Path, body: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        planned(benchfile(tmp_path, body))
    assert said in str(caught.value)


@pytest.mark.parametrize("write", ["open('../x', 'w')", "os.mkdir('../x')", "os.rename('main.py', '../x')"])
def test_a_write_outside_of_its_folder_is_refused_and_does_not_happen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    for name in ("tmp", "bench"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    path = benchfile(tmp_path / "bench", f"def build_run_plan(self):\n    import os\n    {write}\n")
    with pytest.raises(InvalidInput, match=r"benchfile.py:7: its run failed: PermissionError: a benchfile may write"):
        planned(path)
    assert not (tmp_path / "x").exists()
    assert (tmp_path / "bench" / "main.py").exists()


def test_it_may_write_to_its_own_folder_and_those_of_the_suite(tmp_path: Path) -> None:
    extra = tmp_path / "elsewhere" / "extra"
    extra.mkdir(parents=True)
    body = """
        def build_run_plan(self):
            open("own", "w").write("x")
            (self.dirs.extra / "made").mkdir()
            (self.dirs.extra / "made" / "file").write_text("x")
            open("/etc/hostname").read()
            return cmd.CmdCommand(self, "x")
    """
    folder = tmp_path / "bench"
    folder.mkdir()
    dirs = {"dirs": {"venv": "/base/venv", "extra": str(extra)}}
    assert words(benchfile(folder, body), **dirs) == ["x"]
    assert (extra / "made" / "file").exists()


def test_steps_in_turn_are_told_from_processes_at_the_same_time(tmp_path: Path) -> None:
    body = """
        def build_run_plan(self):
            steps = cmd.SequenceCommand(cmd.CmdCommand(self, "a"), cmd.CmdCommand(self, "b"))
            return cmd.ListCommand(steps, cmd.CmdCommand(self, "c"))
    """
    found = planned(benchfile(tmp_path, body))
    assert [(one.argv, one.sequence) for one in found] == [(("a",), 0), (("b",), 1), (("c",), None)]


def test_what_it_prints_and_forks_is_in_nobodys_way(tmp_path: Path) -> None:
    body = """
        def build_run_plan(self):
            import os, sys, time
            print('{"do": "execute"}', flush=True)
            os.write(1, b"x" * 1_000_000)
            if os.fork() == 0:
                open("child", "w").write(str(os.getpid()))
                time.sleep(300)
            while not os.path.exists("child"):
                time.sleep(0.01)
            return cmd.CmdCommand(self, "x")
    """
    assert words(benchfile(tmp_path, body)) == ["x"]
    left = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 100
    while Path(f"/proc/{left}/stat").exists() and Path(f"/proc/{left}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < deadline, "its child lives on"
        time.sleep(0.05)


def test_one_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "TIME_LIMIT_S", 1.0)
    with pytest.raises(InvalidInput, match="its run took longer than 1 s"):
        planned(benchfile(tmp_path, "def build_run_plan(self):\n    while True: pass\n"))


@pytest.mark.skipif(not SHARED.is_dir(), reason="the public folders are not on this machine")
@pytest.mark.parametrize("gpus", [0, 1, 2, 8])
@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("name", ["flops", "huggingface", "lightning", "torchvision", "torchvision_ddp"])
def test_the_public_folders_plan(name: str, nodes: int, gpus: int) -> None:
    plan = "per_gpu" if name in ("flops", "huggingface", "torchvision") else "njobs"
    found = planned(str(SHARED / name / "benchfile.py"), gpus=gpus, nodes=nodes, plan=plan)
    spread = nodes if name == "lightning" else 1
    assert len(found) == (max(1, gpus) if plan == "per_gpu" else spread)
    assert all(one.argv[-3:] == ("--epochs", "3", "--fast") for one in found)
    assert any("benchrun" in one.argv[0] for one in found) == (name == "lightning" and gpus > 1)


def test_its_install_clones_a_repository_and_takes_what_it_names(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "folder"
    for name in ("model/a.py", "model/deep/b.py", "docs/a.py", "requirements.txt"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(name)
    for words in (
        ["init", "-q", "-b", "main"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"],
    ):
        subprocess.run(["git", *words], cwd=source, check=True)
    folder.mkdir()
    body = f"""
        async def install(self):
            from milabench.fs import XPath
            whole = XPath(self.dirs.code) / "whole"
            whole.clone_subtree({str(source)!r}, "main")
            (self.dirs.code / "part").clone_subtree({str(source)!r}, "main", "model")
            whole.merge_into(self.dirs.code / "merged", manifest="/model/\\n!b.py\\n/requirements.txt")
            (self.dirs.code / "lost").clone_subtree({str(source)!r}, "no-such-branch")
    """
    started = []

    def perform(action: Action) -> int:
        started.append(action.argv[:2])
        env = {**os.environ, **{name: value for name, value in action.env.items() if value is not None}}
        return subprocess.run(action.argv, cwd=action.cwd, env=env, stderr=subprocess.DEVNULL).returncode

    with pytest.raises(InvalidInput, match=r"RuntimeError: git fetch .* no-such-branch exited with code 128"):
        ask_benchfile(benchfile(folder, body), "install", request(str(folder)), perform)
    assert (folder / "whole" / "docs" / "a.py").read_text() == "docs/a.py"
    assert sorted(str(path.relative_to(folder / "part")) for path in (folder / "part").rglob("*.py")) == [
        "a.py",
        "deep/b.py",
    ]
    merged = [str(path.relative_to(folder / "merged")) for path in (folder / "merged").rglob("*") if path.is_file()]
    assert sorted(merged) == ["model/a.py", "requirements.txt"]
    assert started[0] == ("git", "init")
    assert not (folder / "lost").exists()
