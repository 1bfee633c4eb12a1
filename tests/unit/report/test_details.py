"""What `show` says beyond the report."""

from __future__ import annotations

import msgspec
from suite_runs import benchmark, launch, measured, result, run

from benchwright.core.benchmark import Command, Script
from benchwright.core.run import Check, CheckStatus
from benchwright.report.base import Report
from benchwright.report.details import details
from benchwright.report.html.reporter import HtmlReporter
from benchwright.results.after_run import report_of

SUITES = Script(path="/suite/resnet/main.py", args=("--batch", "auto_batch(8)"), cwd="/suite/resnet", python="")


def report(**fields: object) -> Report:
    checks = (
        Check(layer="error", status=CheckStatus.PASSED, explanation="the one launch ended with exit code 0"),
        Check(layer="loss", status=CheckStatus.NOT_APPLICABLE, explanation="no loss reported"),
    )
    of = msgspec.structs.replace(benchmark("resnet"), workload=SUITES)
    made = report_of(run(result("resnet", launch(10.0), launch(12.0, seat=1), of=of, checks=checks)))
    return msgspec.structs.replace(made, **fields)


def test_a_suites_command_is_that_of_its_first_process() -> None:
    planned = ("/base/venv/torch/bin/python", "/suite/resnet/main.py", "--batch", "16")
    made = report(commands={"resnet": planned})
    assert f" resnet: {' '.join(planned)}\n   in /suite/resnet\n" in details(made)
    assert " ".join(planned) in HtmlReporter().render(made)


def test_without_its_plan_it_is_the_script_and_no_empty_word() -> None:
    assert " resnet: /suite/resnet/main.py --batch 'auto_batch(8)'\n" in details(report())
    assert "&#x27;&#x27; /suite" not in HtmlReporter().render(report())


def test_a_long_command_is_wrapped_and_at_last_cut() -> None:
    text = details(report(commands={"resnet": ["python", *(f"--option-{n}" for n in range(200))]}))
    lines = text[text.index(" resnet: python") :].partition("\n   in ")[0].splitlines()
    assert len(lines) == 8
    assert max(map(len, lines)) <= 80
    assert lines[-1].endswith(" …")


def test_every_check_is_listed() -> None:
    text = details(report())
    assert "   check error passed: the one launch ended with exit code 0\n" in text
    assert "   check loss not applicable: no loss reported\n" in text


def test_a_process_is_shown_with_its_own_number_once() -> None:
    assert [line.count("rate ") for line in details(report()).splitlines() if line.startswith("   b.R0")] == [1, 1]


def test_a_shells_command_is_shown_as_it_was_given() -> None:
    of = msgspec.structs.replace(benchmark("x"), workload=Command(argv=("a | b",), cwd="/", shell=True), folder=None)
    assert " x: a | b\n" in details(report_of(run(result("x", launch(1.0), of=of))))


def test_no_number_of_a_launch_is_cut() -> None:
    more = [measured("step_time", 0.123456, unit="s", source="loop")]
    made = report_of(run(result("resnet", launch(1_234_567.8, job="a-job-with-a-rather-long-name.D0", more=more))))
    text = details(msgspec.structs.replace(made, width=60))
    assert "rate 1,234,568 items/s" in text
    assert "step_time 123.5 ms" in text
