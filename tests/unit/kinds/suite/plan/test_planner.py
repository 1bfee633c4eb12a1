"""From a suite's benchmarks to jobs: words, environment, launchers, servers."""

from __future__ import annotations

import msgspec
import pytest
from suites import FOLDER, ONE_JOB, PATHS, entry, jobs_of, machine_with, planned

from benchwright.core.benchmark import Command, Launcher, Placement, Serving
from benchwright.core.errors import InvalidInput
from benchwright.core.system import Node, Observation, Scaling, Sizing, System
from benchwright.kinds.registry import kind_of
from benchwright.options.table import Options

NODES = (
    Node(name="worker", ip="10.0.0.2", user="u"),
    Node(name="head", ip="10.0.0.1", main=True, local=True),
    Node(name="spare", ip="10.0.0.3"),
)
PYTHON = "/base/venv/torch/bin/python"


def test_words_are_filled_from_machine_folders_and_options() -> None:
    words = (
        "{cpu_count}",
        "{gpu_count}",
        "{cpu_per_gpu}",
        "{n_worker}",
        "{arch}",
        "{device_name}",
        "{ccl}",
        "{benchwright_base}",
        "{benchwright_venv}",
        "{benchwright_code}",
        "{benchwright_extra}",
        "{benchwright_data}",
        "{benchwright_runs}",
        "{benchwright_cache}",
        "{benchwright_name}",
        "{benchmark_folder}",
        "{benchwright_extra}/x",
        "auto({n_worker}, 8)",
        "{num_machines}",
        "{total_gpu_count}",
    )
    job = jobs_of(entry("b", *words), gpus=4)[0]
    assert job.argv[:2] == (PYTHON, "/suite/bench/main.py")
    assert job.argv[2:] == (
        "64",
        "4",
        "16",
        "16",
        "cuda",
        "cuda",
        "nccl",
        "/base",
        "/base/venv/torch",
        "/suite/bench",
        "/base/extra/grp",
        "/base/data",
        "/base/runs",
        "/base/cache",
        "b",
        "/suite/bench",
        "/base/extra/grp/x",
        "8",
        "1",
        "4",
    )
    assert job.cwd == "/suite/bench"
    assert job.path == ("/base/venv/torch/bin",)


@pytest.mark.parametrize(
    ("cpu", "words"),
    [
        ({}, ("8", "64", "16")),
        ({"auto": 1}, ("16", "64", "16")),
        ({"enabled": True, "n_workers": 3}, ("3", "64", "3")),
        ({"auto": "1", "max": 4}, ("4", "64", "4")),
        ({"auto": 1, "total_count": 8, "reserved_cores": 6}, ("2", "2", "2")),
        ({"auto": 1, "total_count": 4, "min": 0}, ("2", "4", "2")),
    ],
)
def test_options_of_the_cpu_decide_how_many_workers(cpu: dict[str, object], words: tuple[str, ...]) -> None:
    system = System(options={"cpu": cpu})
    job = jobs_of(entry("b", "auto({n_worker}, 8)", "{cpu_count}", "{n_worker}"), gpus=2, system=system)[0]
    assert job.argv[2:] == words


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cpu": {"n_worker": 3}}, "options.cpu: 'n_worker' is not an option of cpu; did you mean 'n_workers'?"),
        ({"cpu": {"n_workers": "many"}}, "options.cpu.n_workers: 'many' is not a whole number"),
        ({"sizer": {"atuo": 1}}, "'atuo' is not an option of sizer; did you mean 'auto'?"),
        ({"cpu": {"auto": "perhaps"}}, "options.cpu.auto: 'perhaps' is neither on nor off"),
        ({"torchrun": 3}, "options.torchrun: '3' is not a map"),
    ],
)
def test_a_wrong_option_is_named(options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        planned(entry(), system=System(options=options))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("arch", "words"),
    [
        ("rocm", ("rocm", "cuda", "rccl")),
        ("xpu", ("xpu", "xpu", "ccl")),
        ("hpu", ("hpu", "hpu", "hccl")),
        ("npu", ("npu", "cpu", "gloo")),
        (None, ("cpu", "cpu", "gloo")),
    ],
)
def test_the_arch_decides_device_and_collectives(arch: str | None, words: tuple[str, ...]) -> None:
    job = jobs_of(entry("b", "{arch}", "{device_name}", "{ccl}"), gpus=0, system=System(arch=arch))[0]
    assert job.argv[2:] == words


def test_an_unknown_placeholder_names_benchmark_word_and_remedy() -> None:
    with pytest.raises(InvalidInput) as caught:
        planned(entry("resnet", "--data", "{benchwright_dta}/x"))
    said = str(caught.value)
    assert said.startswith("suite.yaml [resnet]: resnet: {benchwright_dta} is not a placeholder")
    assert "did you mean '{benchwright_data}'?" in said
    assert "{benchwright_dta}/x" in said.splitlines()[1]


def test_a_benchmark_that_is_skipped_need_not_be_filled() -> None:
    plan = planned(entry("off", "{nonsense}", enabled=False), entry("on"))
    assert [jobs[0].benchmark for jobs in plan.launches] == ["on"]


def test_the_current_environment_is_used_as_it_is() -> None:
    job = jobs_of(entry(), paths=msgspec.structs.replace(PATHS, python="/usr/bin/python3"), gpus=0)[0]
    assert job.argv[0] == "/usr/bin/python3"
    assert "VIRTUAL_ENV" not in job.env
    assert job.path == ("/usr/bin",)


def test_a_batch_size_is_chosen_told_and_noted() -> None:
    seen = tuple(Observation(batch_size=n, memory_bytes=n << 30) for n in (8, 16))
    sizing = Sizing(auto=True, scaling={"b": Scaling(observations=seen)})
    plan = planned(entry("b", "bs=auto_batch(4)"), paths=msgspec.structs.replace(PATHS, sizing=sizing))
    job = plan.launches[0][0]
    assert job.argv[2:] == ("bs=80",)
    assert job.env["BENCHWRIGHT_BATCH_SIZE"] == "80"
    (note,) = plan.notes["b"]
    assert note.startswith("batch size 80, fitted to 80 GiB from 2 observations; beyond the largest one observed, 16")
    assert jobs_of(entry("b", "auto_batch(4)"), gpus=1)[0].env["BENCHWRIGHT_BATCH_SIZE"] == "4"
    assert "BENCHWRIGHT_BATCH_SIZE" not in jobs_of(entry("b"), gpus=1)[0].env


def test_the_capacity_of_the_system_goes_before_the_devices() -> None:
    seen = tuple(Observation(batch_size=n, memory_bytes=n << 30) for n in (8, 16))
    sizing = Sizing(auto=True, scaling={"b": Scaling(observations=seen)})
    system = System(gpu_capacity_bytes=40 << 30)
    paths = msgspec.structs.replace(PATHS, sizing=sizing)
    assert jobs_of(entry("b", "auto_batch(4)"), paths=paths, system=system)[0].argv[2:] == ("40",)


@pytest.mark.parametrize("word", ["auto_batch()", "auto_batch('x')", "auto(1)", "expr(1, 2)"])
def test_a_function_with_the_wrong_values_is_an_error(word: str) -> None:
    with pytest.raises(InvalidInput, match="takes"):
        planned(entry("b", word))


def test_torchrun_starts_one_process_for_each_device() -> None:
    (job,) = jobs_of(entry("b", "--x", folder={"launcher": Launcher(name="torchrun")}, placement=ONE_JOB), gpus=4)
    assert job.argv == (
        *(PYTHON, "-m", "torch.distributed.run", "--standalone", "--nnodes=1", "--nproc-per-node=4"),
        *("/suite/bench/main.py", "--x"),
    )
    assert (job.id, job.devices, job.barrier) == ("b.0", (0, 1, 2, 3), None)


def test_accelerate_is_told_processes_machines_and_deepspeed() -> None:
    folder = {"launcher": Launcher(name="accelerate", args=("--mixed_precision=bf16",))}
    (job,) = jobs_of(entry("b", folder=folder, placement=ONE_JOB), gpus=2)
    assert job.argv[1:] == (
        *("-m", "accelerate.commands.launch", "--num_processes=2", "--num_machines=1", "--multi_gpu"),
        *("--mixed_precision=bf16", "/suite/bench/main.py"),
    )
    (job,) = jobs_of(entry("b", folder={**folder, "config": {"use_deepspeed": True}}, placement=ONE_JOB), gpus=2)
    assert "--use_deepspeed" in job.argv
    assert "--multi_gpu" not in job.argv
    assert "--cpu" in jobs_of(entry("b", folder=folder, placement=ONE_JOB), gpus=0)[0].argv


def test_an_unknown_launcher_is_an_error() -> None:
    with pytest.raises(InvalidInput, match=r"'torchrum' is not a launcher; did you mean 'torchrun'"):
        planned(entry(folder={"launcher": Launcher(name="torchrum")}))


def test_many_machines_meet_at_the_main_one() -> None:
    folder = {"launcher": Launcher(name="torchrun")}
    bench = entry("b", folder=folder, placement=Placement(jobs=1, numbered=True, machines=2))
    jobs = jobs_of(bench, gpus=2, system=System(nodes=NODES, options={"torchrun": {"port": 4000}}))
    assert [(job.id, job.node, job.barrier) for job in jobs] == [
        ("b.0.head", "head", None),
        ("b.0.worker", "worker", None),
    ]
    assert jobs[1].argv[3:8] == (
        "--nnodes=2",
        "--node-rank=1",
        "--master-addr=10.0.0.1",
        "--master-port=4000",
        "--nproc-per-node=2",
    )
    assert jobs[1].stream == f"{FOLDER}/b.0.worker.data"
    assert jobs[1].env["BENCHWRIGHT_NODE_RANK"] == "1"
    assert jobs[1].env["BENCHWRIGHT_MAIN_ADDRESS"] == "10.0.0.1"


def test_another_rendezvous_can_be_asked_for() -> None:
    folder = {"launcher": Launcher(name="torchrun")}
    bench = entry("b", folder=folder, placement=Placement(jobs=1, numbered=True, machines=2))
    jobs = jobs_of(bench, system=System(nodes=NODES, options={"torchrun": {"backend": "c10d"}}))
    assert "--rdzv-endpoint=10.0.0.1:29400" in jobs[0].argv
    assert [job.argv[7] for job in jobs] == ["--rdzv-conf=is_host=1", "--rdzv-conf=is_host=0"]


def test_accelerate_knows_the_main_machine() -> None:
    bench = entry("b", folder={"launcher": Launcher(name="accelerate")}, placement=Placement(numbered=True, machines=2))
    argv = jobs_of(bench, gpus=4, system=System(nodes=NODES))[1].argv
    assert {"--num_processes=8", "--num_machines=2", "--machine_rank=1", "--main_process_ip=10.0.0.1"} <= set(argv)


def test_a_client_is_run_against_its_server() -> None:
    serving = Serving(script="vllm", args=("serve", "{gpu_count}"), ready="tcp:localhost:8000", ready_timeout_s=30)
    (job,) = jobs_of(entry("b", "--n", folder={"serving": serving}, placement=ONE_JOB), gpus=2)
    assert job.argv == (
        *(PYTHON, "-m", "benchprobe.served_client", "--ready", "tcp:localhost:8000", "--timeout", "30"),
        *("--server", "3", "/base/venv/torch/bin/vllm", "serve", "2", "--", PYTHON, "/suite/bench/main.py", "--n"),
    )


def test_further_arguments_are_the_servers_if_our_client_measures_it() -> None:
    """`ab --treatment args:…` compares flags of the server; what the client asks is the same on both sides."""
    theirs = entry("b", folder={"serving": Serving(script="vllm", args=("serve",))}, kind="suite")
    client = Command(argv=("python", "-m", "benchload", "http://127.0.0.1:8000/v1", "--model", "m"), cwd="/suite")
    ours = msgspec.structs.replace(theirs, workload=client)
    kind = kind_of(ours)
    flagged = kind.with_arguments(ours, ("--fast",))
    assert flagged.workload == client
    assert flagged.folder is not None
    assert flagged.folder.serving == Serving(script="vllm", args=("serve", "--fast"))
    assert kind.with_arguments(theirs, ("--fast",)).folder == theirs.folder, "another client gets them itself"


@pytest.mark.parametrize(
    ("script", "words"), [("server.py", (PYTHON, "/suite/bench/server.py")), ("bin/serve", ("/suite/bench/bin/serve",))]
)
def test_a_server_may_be_a_file_of_the_folder(script: str, words: tuple[str, ...]) -> None:
    (job,) = jobs_of(entry("b", folder={"serving": Serving(script=script)}, placement=ONE_JOB))
    at = job.argv.index("--server")
    assert job.argv[at + 1 : at + 2 + len(words)] == (str(len(words)), *words)


def test_a_suite_without_a_base_folder_cannot_be_planned() -> None:
    from benchwright.plan.placement import make_plan

    with pytest.raises(InvalidInput, match="need a base folder"):
        make_plan([entry()], machine_with(1), Options(), kind_of, folder="/", probe_path=None, usable_cores=[])


def test_a_script_finds_its_folders_and_its_environment() -> None:
    env = jobs_of(entry("b", env={"A": "{benchwright_data}/a", "B": None}), gpus=1)[0].env
    assert (env["BENCHWRIGHT_BASE"], env["BENCHWRIGHT_DATA_DIR"]) == ("/base", "/base/data")
    assert (env["XDG_CACHE_HOME"], env["VIRTUAL_ENV"]) == ("/base/cache", "/base/venv/torch")
    assert (env["A"], env["B"]) == ("/base/data/a", None)


def test_jobs_of_repeats_carry_their_number() -> None:
    plan = planned(entry("b"), gpus=2, options=Options(repeat=2))
    assert [[job.id for job in jobs] for jobs in plan.launches] == [["b.R0.D0", "b.R0.D1"], ["b.R1.D0", "b.R1.D1"]]
