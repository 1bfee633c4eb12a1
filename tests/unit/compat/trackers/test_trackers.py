"""Exports for TensorBoard and MLflow, read back by their own readers where they are installed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import builders
import pytest

from benchwright.compat.trackers.mlflow import export_mlflow
from benchwright.compat.trackers.tensorboard import export_tensorboard
from benchwright.core.errors import BenchwrightError
from benchwright.core.note import Note
from benchwright.core.run import Run
from benchwright.core.status import Reason, Status

BUSY = Note(text="ran while the machine was busy", kind="busy")
SPEEDS = (10.0, 12.0, 11.0, 13.0, 9.0, 14.0)


def run() -> Run:
    launches = [
        builders.launch(
            builders.measurement(speed, speed, metric="speed", unit="items/s", warmup_samples=(1.0,)),
            builders.measurement(math.nan, metric="loss", unit=None),
            job=f"train.R{n}",
            position=n,
            notes=(BUSY,),
        )
        for n, speed in enumerate(SPEEDS)
    ]
    bad = builders.failed_launch(job="bad.D0")
    return builders.run(
        builders.result("train", *launches),
        builders.result("bad", bad, status=Status.FAILED, reason=Reason.CRASHED),
        id="r.2026",
    )


def test_event_files_hold_every_sample_with_warm_up_marked(tmp_path: Path) -> None:
    reader: Any = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed"
    )
    left_out = export_tensorboard([run()], tmp_path)
    assert left_out == ("6 samples are not finite, and not in the event files",)
    assert sorted(path.name for path in (tmp_path / "r.2026").iterdir()) == [
        "bad.D0",
        *(f"train.R{n}" for n in range(6)),
    ]
    for number, speed in enumerate(SPEEDS):
        events = reader.EventAccumulator(str(tmp_path / "r.2026" / f"train.R{number}"))
        events.Reload()
        assert [(e.step, e.value) for e in events.Scalars("speed [items/s]")] == [(0, speed), (1, speed)]
        assert [e.value for e in events.Scalars("speed [items/s] (warm-up)")] == [1.0]
        (about,) = events.Tensors("about")
        assert BUSY.text.encode() in about.tensor_proto.string_val[0]


def test_mlflow_gets_medians_with_their_intervals_and_failures_without_a_number(tmp_path: Path) -> None:
    tracking: Any = pytest.importorskip("mlflow.tracking", reason="mlflow is not installed")
    file = tmp_path / "mlflow.db"
    assert export_mlflow([run()], file) == ()
    client = tracking.MlflowClient(tracking_uri=f"sqlite:///{file}")
    (experiment,) = (e for e in client.search_experiments() if e.name == run().name)
    found = {x.info.run_name: x for x in client.search_runs([experiment.experiment_id])}
    assert found.keys() == {"train", "bad"}
    metrics = found["train"].data.metrics
    assert metrics["speed"] == 11.5  # numpy.median(SPEEDS)
    assert metrics["speed.low"] <= 11.5 <= metrics["speed.high"]
    history = client.get_metric_history(found["train"].info.run_id, "speed.launch")
    assert [(m.step, m.value) for m in history] == list(enumerate(SPEEDS))
    assert "loss" not in metrics
    assert BUSY.text in found["train"].data.tags["benchwright.notes"]
    assert (found["bad"].info.status, found["bad"].data.metrics) == ("FAILED", {})
    assert export_mlflow([run()], file) == ("r.2026 is in MLflow already",)
    assert len(client.search_runs([experiment.experiment_id])) == 2


@pytest.mark.parametrize(
    ("export", "package"),
    [(export_tensorboard, "tensorboard"), (export_mlflow, "mlflow")],
    ids=["tensorboard", "mlflow"],
)
def test_a_package_that_is_missing_is_named(
    export: Any, package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    for name in ("mlflow", "mlflow.exceptions", "tensorboard", "tensorboard.compat.proto.event_pb2"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BenchwrightError, match=f"needs {package}, which is not installed; pip install {package}"):
        export([run()], tmp_path / "out")
