"""milabench's own report of a run of theirs, figure by figure, and their replays of what validation must find."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchwright.analysis.checks.validation import check, validation_names
from benchwright.analysis.score import score_run
from benchwright.compat.milabench.run_folder import MilabenchImporter
from benchwright.compat.milabench.score import milabench_score
from benchwright.core.run import CheckStatus

SAMPLES = Path(__file__).parent / "imports" / "milabench"


def test_the_score_of_a_real_run_is_that_of_their_report() -> None:
    (run,) = MilabenchImporter().read(SAMPLES / "rijubigo.2023-03-24")
    score = milabench_score(run)
    (row,) = score.rows
    assert (row.name, row.n, row.fail) == ("benchio", 4, 0)
    assert (round(row.perf, 2), round(row.score, 2), round(score.value, 2)) == (7979.82, 7979.82, 7980.82)
    assert (f"{row.sem:.1%}", f"{row.std:.1%}") == ("2.9%", "17.2%")
    assert score.passed
    assert round(milabench_score(run, weights={"benchio": 2.0}).value, 2) == 7980.82


def test_ours_counts_what_its_two_processes_did_together() -> None:
    (run,) = MilabenchImporter().read(SAMPLES / "rijubigo.2023-03-24")
    (one,) = score_run(run).benchmarks
    assert (one.processes, one.interval) == (2, None)  # two launches tell no interval
    assert one.value == pytest.approx(2 * 7979.82, rel=0.05)


@pytest.mark.parametrize(
    ("replay", "layer", "status", "words"),
    [
        ("error", "error", CheckStatus.FAILED, "exit code"),
        ("loss", "loss", CheckStatus.FAILED, "loss became"),
        ("ensure_rate", "ensure_rate", CheckStatus.FAILED, "no rate"),
        ("early_stop", "error", CheckStatus.PASSED, ""),
        ("usage", "usage", CheckStatus.PASSED, "busy 72 %"),
        ("no_usage", "usage", CheckStatus.FAILED, "less than 50 %"),
    ],
)
def test_their_replays_are_judged(replay: str, layer: str, status: CheckStatus, words: str) -> None:
    (run,) = MilabenchImporter().read(SAMPLES / "replays" / f"{replay}.data")
    (found,) = (c for c in check(run.results[0], validation_names("all")) if c.layer == layer)
    assert found.status is status, found.explanation
    assert words in found.explanation
