"""What every exporter must do with any run."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import builders
import pytest
from builders import benchmark, launch, measurement, result
from plugin_package import variants

from benchwright.core.errors import BenchwrightError
from benchwright.core.run import Run
from benchwright.core.status import Reason, Status
from benchwright.report.export.base import EXPORTERS, Exporter, exporter_for

RESULTS = {
    "nothing": (),
    "ok": (result(benchmark("b"), launch(measurement(1.0, 2.0))),),
    "not finite": (result(benchmark("b"), launch(measurement(math.nan, math.inf))),),
    "failed": (result(benchmark("b"), launch(status=Status.FAILED), status=Status.FAILED, reason=Reason.CRASHED),),
}


@pytest.fixture(params=variants(EXPORTERS))
def exporter(request: pytest.FixtureRequest, plugins: None) -> Exporter:
    if request.param in ("mlflow", "tensorboard") and importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    found = exporter_for("x", request.param)
    assert found is not None
    return found


@pytest.fixture(params=RESULTS)
def run(request: pytest.FixtureRequest) -> Run:
    return builders.run(*RESULTS[request.param])


def test_any_run_is_exported_and_what_is_left_out_is_named(exporter: Exporter, run: Run, tmp_path: Path) -> None:
    target = tmp_path / f"x{exporter.suffix or ''}"
    assert all(line.strip() for line in exporter.export([run], str(target)))
    assert exporter.suffix is None or target.is_file()


def test_a_place_that_cannot_be_written_is_an_error_in_words(exporter: Exporter, tmp_path: Path) -> None:
    (tmp_path / "in the way").write_text("")
    with pytest.raises((BenchwrightError, OSError)):
        exporter.export([builders.run(*RESULTS["ok"])], str(tmp_path / "in the way" / "x"))


def test_a_files_extension_chooses_the_exporter(plugins: None) -> None:
    for suffix in (".json", ".csv", ".parquet", ".tsv"):
        found = exporter_for(f"samples{suffix}", None)
        assert found is not None
        assert found.suffix == suffix
    assert exporter_for("samples.xyz", None) is None
