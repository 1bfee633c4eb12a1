"""Benchmarks of the machine itself: their figures are what others are compared with, so what they count must be right."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from shipped_benchmarks import checked_lines, load, run, run_here

torch = pytest.importorskip("torch")
matmul, memory_bandwidth, all_reduce = load("matmul"), load("memory_bandwidth"), load("all_reduce")
ddp_scaling = load("ddp_scaling", "scaling")
ddp_main = load("ddp_scaling")

from workload import several  # noqa: E402
from workload.claims import counted_flops, parameter_count  # noqa: E402
from workload.repeating import MOST, times_a_step  # noqa: E402


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.long)])
def test_a_product_is_computed_in_the_precision_it_claims(tmp_path, precision):
    assert checked_lines("matmul", "--precision", precision, "--m", "256", "--n", "192", "--k", "512", data=tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
@pytest.mark.parametrize(
    ("precision", "why"),
    [("tf32", "tf32 is arithmetic of GPUs"), ("fp8", "number by number"), ("int8", "no fast product in int8")],
)
def test_what_a_machine_cannot_is_refused_in_words(tmp_path, precision, why):
    done = run_here("matmul", "--precision", precision, "--steps", "1", data=tmp_path)
    assert done.returncode == 1
    assert "cannot be measured here" in done.stderr
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_less_precise_arithmetic_than_claimed_is_noticed(capsys):
    a, b = torch.randn(64, 512), torch.randn(512, 32)
    options = SimpleNamespace(m=64, n=32, k=512, precision="fp32")
    assert matmul.check(options, a, b, lambda: a @ b) == 0
    assert matmul.check(options, a, b, lambda: (a.bfloat16() @ b.bfloat16()).float()) == 1
    assert "WRONG an error of" in capsys.readouterr().out


def test_arithmetic_of_a_product_is_what_is_counted():
    a, b = torch.randn(24, 40, device="meta"), torch.randn(40, 56, device="meta")
    assert counted_flops(lambda: a @ b) == matmul.flops(24, 56, 40)


@pytest.mark.parametrize("operation", ["copy", "scale", "add", "triad"])
def test_memory_is_gone_through_as_stream_does(tmp_path, operation):
    lines = checked_lines("memory_bandwidth", "--operation", operation, "--mib", "1", data=tmp_path)
    assert any("bytes of a pass" in line for line in lines)


def test_an_operation_needs_no_memory_of_its_own():
    a, b, c = (torch.rand(1000) for _ in range(3))
    for name in memory_bandwidth.ARRAYS:
        written = memory_bandwidth.operation(name, a, b, c)()
        assert written.data_ptr() in {t.data_ptr() for t in (a, b, c)}
    assert memory_bandwidth.bytes_moved("triad", 4000) == 12_000


def test_every_byte_is_copied(tmp_path):
    assert checked_lines("copies", "--memory", "pageable", "--mib", "1", data=tmp_path)
    assert checked_lines("copies", "--direction", "device_to_host", "--mib", "1", data=tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without a GPU")
def test_copies_without_a_device_are_called_what_they_are(tmp_path):
    done = run_here("copies", "--steps", "2", "--mib", "1", data=tmp_path)
    assert (done.returncode, done.stdout) == (0, "there is no device: main memory is copied to main memory\n")


def test_every_operation_is_done(tmp_path):
    assert checked_lines("launch_latency", data=tmp_path)
    assert checked_lines("launch_latency", "--wait", "--batch-size", "7", data=tmp_path)


def test_short_work_is_done_several_times_in_a_step():
    cpu = torch.device("cpu")
    done = []
    count = times_a_step(lambda: done.append(1), cpu, at_least_s=1e-3)
    assert 1 < count <= MOST
    assert count & (count - 1) == 0
    assert times_a_step(lambda: torch.rand(1000), cpu, at_least_s=0.0) == 1


@pytest.mark.long
def test_two_processes_get_the_same_sum(tmp_path):
    assert checked_lines("all_reduce", "--mib", "1", data=tmp_path, is_process=True)


def test_alone_there_is_nothing_to_reduce(tmp_path):
    done = run_here("all_reduce", data=tmp_path)
    assert done.returncode == 1
    assert "needs several processes; start it by torchrun" in done.stderr


def test_bandwidths_are_those_of_nccl_tests():
    assert [all_reduce.bus_factor(n) for n in (1, 2, 4, 8)] == [0.0, 1.0, 1.5, 1.75]
    options = SimpleNamespace(smallest=4096, mib=1, precision="bf16")
    assert all_reduce.sizes(options) == [4096, 16384, 65536, 262144, 1048576]
    assert all_reduce.elements(1024, options) == 512
    assert [all_reduce.name_of(n) for n in (512, 4096, 1 << 20, 3 << 30)] == ["512B", "4KiB", "1MiB", "3GiB"]


@pytest.mark.long
def test_two_processes_train_one_model(tmp_path):
    lines = checked_lines("ddp_scaling", "--width", "64", "--blocks", "1", data=tmp_path, is_process=True)
    assert any("two processes stay one model" in line for line in lines)


@pytest.mark.parametrize("size", ["tiny", "small", "full"])
def test_the_model_has_the_parameters_and_the_arithmetic_it_claims(size):
    width, blocks = (ddp_main.SIZES[size][name] for name in ("width", "blocks"))
    with torch.device("meta"):
        model = ddp_scaling.model(width, blocks)
        inputs = torch.empty(4, ddp_scaling.INPUTS)
    assert parameter_count(model) == ddp_scaling.parameter_formula(width, blocks)
    counted = counted_flops(lambda: model(inputs).sum().backward())
    assert counted / 4 == pytest.approx(ddp_scaling.flops_formula(width, blocks), rel=1e-3)


def test_numbers_of_processes_double_up_to_all():
    assert [ddp_scaling.counts(n) for n in (1, 2, 3, 8)] == [[1], [1, 2], [1, 2, 3], [1, 2, 4, 8]]
    assert ddp_main.how_many("3", "cpu") == 3
    assert 1 <= ddp_main.how_many("all", "cpu") <= ddp_main.MOST_ON_CPU


def test_one_process_stays_one(monkeypatch):
    started = []
    monkeypatch.setattr(several.os, "execv", lambda path, words: started.append(words))
    several.become_several(1)
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    several.become_several(4)
    assert started == []
    monkeypatch.delenv("TORCHELASTIC_RUN_ID")
    several.become_several(4)
    assert "--nproc-per-node=4" in started[0]


@pytest.mark.long
def test_scaling_is_told_by_the_first_rank_and_all_are_measured(tmp_path):
    stream = tmp_path / "stream"
    config = {"stream": str(stream), "stop": {"steps": 5}, "warmup": {"steps": 2}}
    small = ("--width", "32", "--blocks", "1", "--phase-steps", "3", "--batch-size", "8")
    done = run("ddp_scaling", "--processes", "2", *small, data=tmp_path, BENCHPROBE_CONFIG=json.dumps(config))
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in stream.read_text().splitlines()]
    given = {name: value for e in events if e["event"] == "give" for name, value in e["values"].items()}
    assert given["scaling_efficiency.1"] == 1.0
    assert given["scaling_efficiency.2"] == pytest.approx(given["throughput_of.2"] / (2 * given["throughput_of.1"]))
    assert given["flops_per_item.fp32"] == ddp_scaling.flops_formula(32, 1)
    assert sorted(e["rank"] for e in events if e["event"] == "probe") == [0, 1]
    assert sum(e["event"] == "stop" for e in events) == 2
