"""A new benchmark, measured as it is."""

from __future__ import annotations

import pytest
from command_line import metric


@pytest.mark.parametrize(("template", "measured"), [("simple", "rate"), ("stdout", "speed")])
def test_what_needs_nothing_runs_at_once(bw, template, measured):
    said = bw("new", "mine", "--template", template).stdout
    assert said.splitlines()[-1] == "  benchwright run mine"
    short = ("--override", "mine.stop.steps=100") if template == "simple" else ()
    body = bw.json("run", "mine", *short)
    assert [(result["benchmark"], result["status"]) for result in body["results"]] == [("mine", "ok")]
    assert metric(body, measured)["unit"] == "items/s"
    assert metric(body, measured)["value"] > 0
    assert [path.name for path in bw.last_run().glob("*.data")] == ["mine.D0.data"]
    assert "mine" in bw("report").stdout
    assert bw.last_run().name.startswith("mine.")


@pytest.mark.parametrize(
    "template", [pytest.param("voir", marks=pytest.mark.compat), pytest.param("model", marks=pytest.mark.long)]
)
def test_what_needs_data_is_prepared_first(bw, template):
    """With the environment at hand: what `install` does is tested elsewhere, without torch."""
    pytest.importorskip({"voir": "voir", "model": "torch"}[template])
    bw("new", "mine", "--template", template)
    options = ("mine/dev.yaml", "--use-current-env")
    refused = bw("run", *options, "--no-setup", code=None)
    assert refused.returncode in (2, 3)
    assert "run: benchwright prepare mine/dev.yaml --select mine --use-current-env\n" in refused.stderr
    bw("prepare", *options)
    assert list((bw.base / "data" / "mine").iterdir()) != []
    # Short, and with one thread: torch's threads wait for each other for long on busy cores.
    short = {"voir": ("voir.options.interval=0.1s",), "model": ("warmup=3", "stop.steps=5")}[template]
    overrides = [word for setting in short for word in ("--override", f"mine.{setting}")]
    body = bw.json("run", *options, *overrides, env={"OMP_NUM_THREADS": "1"})
    assert [result["status"] for result in body["results"]] == ["ok"]
    assert metric(body, "rate")["value"] > 0
    assert metric(body, "loss")["value"] >= 0


def test_a_new_benchmark_never_replaces_another(bw):
    bw("new", "mine")
    again = bw("new", "mine", code=2)
    assert "mine: exists already; choose another name, or add --force" in again.stderr
    assert bw("new", "a/b", code=2).stderr.startswith("benchwright: NAME: 'a/b' is a path, not a name")
