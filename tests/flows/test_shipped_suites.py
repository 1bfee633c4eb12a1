"""The suites that come with benchwright: they are found by name, hold together, and run."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from command_line import CommandLine
from shipped_benchmarks import run_here

from benchwright.kinds.suite.read.suite import read_suite
from benchwright.kinds.suite.shipped import shipped_suite, shipped_suites

ROOT = Path(__file__).resolve().parents[2]
TINY = ["--override", "*.argv.--size=tiny"]


def test_every_suite_is_found_by_name_and_holds_together() -> None:
    assert set(shipped_suites()) == {"quick", "cpu", "standard", "inference", "system"}
    for name, path in shipped_suites().items():
        assert shipped_suite(f"suites/{name}.yaml") == path
        suite = read_suite(path)
        assert suite.selected, name
        for entry in suite.selected:
            assert (Path(suite.entries[entry]["definition"]) / "main.py").is_file(), (name, entry)


def test_every_benchmark_is_in_a_suite_and_says_what_it_is() -> None:
    used = {
        Path(entry["definition"]).name
        for path in shipped_suites().values()
        for entry in read_suite(path).entries.values()
        if entry.get("enabled")
    }
    folders = {p.name for p in (ROOT / "benchmarks").iterdir() if p.is_dir() and not p.name.startswith(("_", "."))}
    assert folders == used
    for folder in folders:
        for file in ("README.md", "requirements.in", "main.py"):
            assert (ROOT / "benchmarks" / folder / file).is_file(), (folder, file)


# Entries of `standard` that differ from others only by arguments: what they compute is checked in tests/benchmarks.
VARIANTS = {
    *("resnet50", "convnext_large", "vit_b_16", "gpt2-compiled", "gpt2-checkpointing", "llama-1b"),
    *("llama-1b-math-attention", "llm-prefill", "llm-decode", "peak-bf16"),
}


PARTS = [
    "dlrm",
    pytest.param("training", marks=pytest.mark.long),
    pytest.param("inference,system", marks=pytest.mark.long),
]


@pytest.mark.parametrize("part", PARTS)
def test_every_benchmark_of_standard_runs_at_tiny(bw: CommandLine, part: str) -> None:
    """One of them tells whether suite, benchmarks and runner fit together; what each computes tests/benchmarks checks."""
    environment = {"OMP_NUM_THREADS": "1", "VIRTUAL_ENV": os.fspath(Path(sys.prefix))}
    chosen = ["--select", part, "--exclude", ",".join(sorted(VARIANTS)), "--use-current-env", *TINY]
    bw("prepare", "standard", *chosen, env=environment)
    short = ["--stop", "2", "--warmup", "1", "--no-store"]
    done = bw("run", "standard", *chosen, *short, "--json", env=environment, code=None)
    results = json.loads(done.stdout)["results"]
    failed = [(r["benchmark"], r["reason"], r["detail"]) for r in results if r["status"] == "failed"]
    assert done.returncode == 0, failed
    statuses = {r["benchmark"]: r["status"] for r in results}
    skipped = {name for name, status in statuses.items() if status == "skipped"}
    assert all(name.endswith("-gpus") for name in skipped)  # this machine has no two GPUs
    assert {status for name, status in statuses.items() if name not in skipped} == {"ok"}


def test_nothing_but_variants_of_what_runs_is_left_out() -> None:
    entries = read_suite(shipped_suites()["standard"]).entries
    enabled = {name for name, entry in entries.items() if entry.get("enabled")}
    assert enabled > VARIANTS
    definitions = {name: entries[name]["definition"] for name in enabled}
    assert {definitions[name] for name in VARIANTS} <= {definitions[name] for name in enabled - VARIANTS}


@pytest.mark.parametrize("name", sorted(VARIANTS - {"gpt2-compiled"}))  # compiling takes long
def test_a_variant_is_started_with_arguments_that_its_program_takes(bw: CommandLine, name: str) -> None:
    pytest.importorskip("torch")
    plan = json.loads(bw("plan", "standard", "--select", name, "--use-current-env", *TINY, "--json").stdout)
    ((job,),) = (benchmark["jobs"] for benchmark in plan["benchmarks"])
    _, program, *argv = job["argv"]
    # Without instructions for bf16 one product of the usual size takes a processor half a minute.
    smaller = ["--m", "128", "--n", "128", "--k", "128"] if name == "peak-bf16" else []
    done = run_here(Path(program).parent.name, *argv, *smaller, "--steps", "2", data=bw.base)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
