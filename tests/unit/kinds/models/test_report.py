"""Tables of models: what stands in them, what is compared with what, and what is never shown as a number."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import Any

import model_runs as made
import msgspec
import pytest
from builders import failed_launch
from model_runs import BUILT, check, failed, figure, launch, model, profiled, report, result, steps

from benchwright.analysis.efficiency import run_efficiencies
from benchwright.core.metric import Direction
from benchwright.core.model import FoundInput
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result
from benchwright.core.status import Reason, Status
from benchwright.kinds.models.report.facts import checked, step_outcome
from benchwright.kinds.models.report.fields import error_words
from benchwright.kinds.models.report.rows import model_rows, operators
from benchwright.kinds.models.report.table import count_words
from benchwright.report.base import Report
from benchwright.report.details import details
from benchwright.report.html import HtmlReporter
from benchwright.report.markdown import MarkdownReporter
from benchwright.report.registry import REPORTERS, reporter_named
from benchwright.report.run_json import JsonReporter
from benchwright.report.screen import ScreenReporter

OPERATORS = {f"aten::op{i}": 0.001 / (i + 1) for i in range(9)} | {"other": 0.002}


def screen(*results: Result, width: int = 80, **fields: object) -> str:
    text = ScreenReporter().render(report(results, width=width, **fields))
    assert all(len(line) <= width for line in text.splitlines())
    return text


def speedups(*results: Result) -> list[float | None]:
    return [None if r.speedup is None else round(r.speedup, 1) for r in model_rows(report(results))]


def built_in(*results: Result) -> list[float | None]:
    return [r.build_s for r in model_rows(report(results))]


class TestScreen:
    def test_batches_and_runtimes_of_a_model_stand_in_one_table(self) -> None:
        text = screen(*made.bert())
        assert text.count("BertModel") == 1
        head, _, rest = text.partition("latency p50 [p99]")
        assert "bert.py  BertModel  109.5 M parameters  22.4 GFLOP an item  (bert.py:21)" in head
        assert "8c1f02aa 91d2e4b7" in head
        words = [line.split()[:2] for line in rest.splitlines()]
        assert [w for w in words if w[:1] in (["1"], ["8"]) and len(w) == 2] == [
            [batch, runtime] for batch in "18" for runtime in ("torch-eager", "onnxruntime", "openvino")
        ]
        assert "1     onnxruntime" in rest
        assert "1.43 2e-6 ✓ 6.10 s 614 MiB" in rest

    def test_a_failed_step_is_a_row_that_is_not_cut(self) -> None:
        text = " ".join(screen(*made.bert()).split())
        assert "openvino FAILED in export: unsupported operator aten::foo (bert.py:21 → modeling_bert.py:310)" in text

    def test_where_no_item_is_known_calls_are_counted(self) -> None:
        rows = [
            result(model(items=None), launch(0.01, items=None)),
            result(model("onnxruntime"), launch(0.005, items=4)),
        ]
        text = screen(rows[0])
        assert "calls/s" in text
        assert "items/s" not in text
        assert " 22.4 GFLOP " in text
        both = screen(*rows, width=200)
        eager, ort = (line.split() for line in both.splitlines() if "torch-eager" in line or "onnxruntime" in line)
        assert "items/s  calls/s" in both
        assert 98 < float(eager[eager.index("–") + 1]) < 102
        assert 790 < float(ort[ort.index("–") - 1]) < 810

    @pytest.mark.parametrize("name", sorted(REPORTERS.built_in))
    def test_no_format_says_items_where_calls_are_counted(self, name: str) -> None:
        streams = figure("throughput.streams", 250.0, unit="calls/s", labels={"streams": "2"})
        text = reporter_named(name).render(
            report([result(model(items=None), launch(0.01, items=None, more=(streams,)))], width=200)
        )
        assert "items/s" not in text
        assert "flops_per_item" not in text
        if name != "driver":
            assert "calls/s" in text or "calls_per_s" in text

    def test_items_and_arithmetic_are_what_a_launch_told(self) -> None:
        file = model("onnxruntime", script=None, file="/home/user/net.onnx", class_="net.onnx", inputs=(), items=None)
        known = {"items": 4, "items_from": "dimension 'batch' of x in the file"}
        done = result(file, launch(0.01, items=4, facts={"model": {"parameters": 7}, "items": known}))
        text = screen(done)
        assert "89.6 GFLOP " in text  # four times 22.4
        assert "items/s" in text
        assert "items: 4 in a call (dimension 'batch' of x in the file)" in details(report([done]))
        (body,) = json.loads(JsonReporter().render(report([done])))["results"]
        assert (body["model"]["items"], body["model"]["items_from"]) == (4, "dimension 'batch' of x in the file")

    @pytest.mark.parametrize("width", [60, 80, 100, 140, 200])
    def test_any_width_is_kept_and_the_latency_stays(self, width: int) -> None:
        text = screen(*made.bert(), width=width)
        assert "41.2" in text
        assert ("no room here for:" in text) == (width < 80)

    def test_the_slow_end_has_the_unit_of_the_median_and_enough_samples(self) -> None:
        assert "latency p50 [p99]" in screen(result(model(), launch(0.95, samples=900)))
        few = screen(result(model(), launch(0.95, samples=100)))
        assert "[p90]" in few
        assert "[p99]" not in few
        assert "[" not in screen(result(model(), launch(0.95, samples=30)))

    def test_a_row_with_too_few_samples_says_so_beside_others(self) -> None:
        text = screen(result(model(), launch(0.04)), result(model("openvino"), launch(0.05, samples=20)))
        assert "[–]" in text

    def test_one_row_of_many_brings_no_slow_end_to_all(self) -> None:
        few = [result(model(r), launch(0.05, samples=20)) for r in ("openvino", "torch-compile")]
        assert "[" not in screen(result(model(), launch(0.04)), *few)

    def test_launches_show_how_well_the_median_is_known(self) -> None:
        many = [launch(0.04 * (1 + 0.01 * (p % 3)), position=p, samples=40) for p in range(6)]
        assert "± 95 %" in screen(result(model(), *many))
        assert "± 95 %" not in screen(result(model(), many[0]))

    def test_device_and_precision_are_columns_only_where_they_differ(self) -> None:
        same = screen(
            result(model(device="cuda"), launch(0.01)), result(model("onnxruntime", device="cuda"), launch(0.01))
        )
        assert "on cuda" in same
        assert "device" not in same.partition("saved")[0].replace("device memory", "")
        both = screen(result(model(), launch(0.02)), result(model(device="cuda"), launch(0.01)))
        assert "device" in both

    def test_another_way_of_building_is_said_once(self) -> None:
        ways = {"onnx_opset": 17, "sequence_file": "/x/int8.py"}
        text = screen(*(result(model(name, **ways), launch(0.01)) for name in ("onnxruntime", "openvino")))
        assert text.count("built with opset17, int8.py") == 1

    def test_the_precision_that_was_really_used_is_shown(self) -> None:
        facts = {"runtime": {"name": "torch-eager", "precision": "bf16"}}
        text = screen(result(model(), launch(0.01, facts=facts)))
        assert "in bf16" in text
        assert "fp32 requested; the model computes in bf16" in text

    def test_shapes_of_one_model_are_told_apart(self) -> None:
        shapes = [(FoundInput(name="x", shape=(1, n), dtype="int64"),) for n in (16, 17)]
        text = screen(*(result(model(identity=f"{i}{'a' * 15}", inputs=s), launch(0.01)) for i, s in enumerate(shapes)))
        assert "1×16" in text
        assert "1×17" in text

    def test_scripts_of_one_name_are_told_apart_by_their_folders(self) -> None:
        paths = ("/home/me/a/net.py", "/home/me/b/net.py", "/srv/b/net.py", "/home/me/b/other.py")
        found = [
            result(model("torch-eager", script=path, identity=f"{number:016x}", place=None), launch(0.01))
            for number, path in enumerate(paths)
        ]
        heads = [line.split()[0] for line in screen(*found).splitlines() if "BertModel" in line]
        assert heads == ["a/net.py", "me/b/net.py", "srv/b/net.py", "other.py"]

    def test_profiles_of_several_shapes_are_told_apart(self) -> None:
        shapes = [(FoundInput(name="x", shape=(1, n), dtype="int64"),) for n in (16, 17)]
        ops = profiled("torch-eager", OPERATORS).launches
        rows = [
            result(model(identity=f"{i}{'a' * 15}", inputs=s, profile=True), *ops, parameters={"k": "2"})
            for i, s in enumerate(shapes)
        ]
        for text in (screen(*rows), HtmlReporter().render(report(rows))):
            assert "torch-eager on cpu in fp32, k=2, 1×16" in text
            assert "torch-eager on cpu in fp32, k=2, 1×17" in text

    def test_rows_without_numbers_still_say_what_their_parameters_are(self) -> None:
        text = screen(result(model(), status=Status.SKIPPED, withheld="never called", parameters={"batch_size": "8"}))
        assert re.search(r"^ +batch\n +8 +not measured: never called$", text, re.MULTILINE)

    def test_the_inputs_of_a_file_are_those_its_launches_told(self) -> None:
        told = {"inputs": [{"name": "data", "shape": [4, 3], "dtype": "float32"}], "items": 4}
        file = model("openvino", script=None, file="/home/user/net.xml", class_="net.xml", inputs=(), items=None)
        shown = report([result(file, launch(0.01, facts={"model": told}))])
        for text in (details(shown, None), HtmlReporter().render(shown), reporter_named("csv").render(shown)):
            assert "data 4×3 float32" in text

    def test_models_that_differ_in_nothing_visible_have_their_identity(self) -> None:
        text = screen(*(result(model(identity=c * 16), launch(0.01)) for c in "ab"))
        assert "aaaaaaaa  torch-eager" in text
        assert "bbbbbbbb  torch-eager" in text

    def test_what_was_found_and_not_measured_is_listed_with_the_reason(self) -> None:
        text = screen(
            result(model(class_="Head"), status=Status.SKIPPED, withheld="it was built but never called"),
        )
        assert "not measured: it was built but never called" in text
        assert "torch-eager" not in text

    def test_it_is_listed_even_if_everything_is_profiled(self) -> None:
        listed = result(model(class_="Head", profile=True), status=Status.SKIPPED, withheld="never called")
        assert "not measured: never called" in screen(listed)

    def test_the_log_is_shown_only_if_nobody_said_what_went_wrong(self) -> None:
        tail = {"x.D0": ["Traceback", "ValueError: no"], "bert.D0": ["a warning of the exporter"]}
        crashed = failed_launch(job="x.D0", detail="exit code 1")
        dead = result(model(), crashed, status=Status.FAILED, reason=Reason.CRASHED, detail="exit code 1")
        text = screen(dead, failed(model("openvino"), "in export: no"), log_tails=tail)
        assert "ValueError: no" in text
        assert "a warning of the exporter" not in text

    def test_notes_are_said_once_with_the_rows_they_are_about(self) -> None:
        busy = launch(0.01, notes=(Note(text="the machine was busy"),))
        text = screen(
            result(model(), busy), result(model("onnxruntime"), busy), result(model("openvino"), launch(0.01))
        )
        assert text.count("the machine was busy") == 1
        assert "(torch-eager, onnxruntime)" in text

    def test_outputs_that_differ_from_call_to_call_claim_nothing(self) -> None:
        facts = {"check": check(0.5, claimed=False, detail="non-deterministic: two calls differ by 0.5")}
        text = screen(result(model(), launch(0.01, facts=facts)))
        assert "5e-1 ~" in text
        assert "⚠ non-deterministic: two calls differ by 0.5" in text

    @pytest.mark.parametrize("which", ["torch-eager", "onnxruntime"])
    def test_what_may_be_any_answer_gives_no_speed_up(self, which: str) -> None:
        facts = {"check": check(4e8, claimed=False, detail="the model is ill-conditioned, so nothing is claimed")}
        results = [
            result(model(runtime), launch(seconds, facts=facts if runtime == which else {}))
            for runtime, seconds in (("torch-eager", 0.03), ("onnxruntime", 0.01))
        ]
        text = screen(*results)
        assert "4e+8 ~" in text
        assert "⚠ the model is ill-conditioned, so nothing is claimed" in text
        assert "3.00" not in text
        assert [row.speedup for row in model_rows(report(results))] == [None if which == "torch-eager" else 1.0, None]

    def test_where_tf32_is_used_is_said_and_its_share_of_the_peak_is_one(self) -> None:
        runtime = {"name": "torch-eager", "precision": "fp32", "details": {"tf32": "convolutions only"}}
        tf32 = figure("flops_per_item.tf32", 10e9, unit=None, source="give", direction=Direction.NEITHER)
        done = result(model(device="cuda"), launch(0.01, facts={"runtime": runtime}, more=(tf32,)))
        made_of = report([done], efficiency=run_efficiencies([done]))
        text = ScreenReporter().render(made_of)
        assert "⚠ computed in TF32: convolutions only" in text
        assert "in tf32" not in text
        assert "TF32 in convolutions only" in details(made_of)
        (row,) = model_rows(made_of)
        assert row.flops == pytest.approx(32.4e9)
        assert row.flop_per_s == pytest.approx(32.4e9 / 0.01, rel=0.02)
        assert row.peak_share is None, "no peak is known"

    def test_another_reference_is_said(self) -> None:
        facts = {"check": check(reference="float32 eager")}
        assert "the error is against float32 eager" in screen(result(model(), launch(0.01, facts=facts)))

    def test_where_the_time_goes(self) -> None:
        text = screen(result(model(), launch(0.01)), profiled("torch-eager", OPERATORS))
        assert "where the time goes: torch-eager on cpu in fp32" in text
        assert "aten::op0" in text
        assert "5 others ('bw show')" in text
        assert text.count("torch-eager") == 2  # a profile is no row of the table

    def test_show_has_all_operators_and_what_ran_it(self) -> None:
        facts = {"build": steps(*BUILT), "runtime": {"name": "onnxruntime", "version": "1.24", "threads": 2}}
        text = details(report([result(model(), launch(0.01, facts=facts)), profiled("torch-eager", OPERATORS)]))
        assert all(op in text for op in OPERATORS)
        assert "runtime: onnxruntime 1.24, 2 threads" in text
        assert "build: export 5.20 s, optimise 900 ms" in text
        assert "first result: 300 ms (load 210 ms, first run 90 ms)" in text
        assert "outputs: right; relative L2 2e-6" in text

    def test_show_has_what_a_call_from_python_adds(self) -> None:
        own = (figure("time.in_runtime", 0.0099), figure("time.around_runtime", 15e-6))
        text = details(report([result(model(), launch(0.01, more=own))]))
        assert "a call: 9.9 ms by the runtime's own clock; calling it from Python adds" in text
        assert "by the runtime's own clock" not in details(report([result(model(), launch(0.01))]))


class TestWhatIsComparedWithEager:
    def test_the_same_model_parameters_and_device(self) -> None:
        assert speedups(*made.bert()) == [1.0, 1.4, None, 1.0, 1.4, None]

    def test_never_another_device_identity_or_thread_count(self) -> None:
        eager = result(model(), launch(0.04))
        others = (
            model("onnxruntime", device="cuda"),
            model("onnxruntime", identity="f" * 16),
            model("onnxruntime", threads=1),
            model("onnxruntime", args=("--batch_size", "8")),
        )
        assert speedups(eager, *(result(m, launch(0.02)) for m in others)) == [1.0, None, None, None, None]

    def test_never_an_eager_that_failed_or_has_another_precision(self) -> None:
        wrong = result(model(), launch(0.04, status=Status.FAILED), status=Status.FAILED, reason=Reason.INVALID)
        slow = Launch(job="x", status=Status.FAILED, reason=Reason.TIMED_OUT, position=1)
        late = result(model(), launch(0.04), slow, status=Status.FAILED, reason=Reason.TIMED_OUT)
        half = result(model(precision="bf16"), launch(0.03))
        other = result(model("onnxruntime"), launch(0.02))
        for eager in (wrong, late, half):
            assert speedups(eager, other) == [None, None]

    def test_a_model_file_has_no_eager(self) -> None:
        assert speedups(result(model("onnxruntime", script=None, file="/m.onnx"), launch(0.02))) == [None]

    def test_a_latency_that_is_no_number_gives_none(self) -> None:
        broken = Launch(job="b", status=Status.OK, measurements=(figure("latency", math.nan),))
        assert speedups(result(model(), broken), result(model("openvino"), launch(0.01))) == [None, None]


class TestConditionsOfARatio:
    busy = (Note(text="ran while the machine was busy", evidence="got 33 % of the CPU time it wanted", kind="busy"),)

    def share(self, value: float) -> dict[str, Any]:
        return {"more": (figure("cpu.own_share", value, unit="ratio", source="sampler", aggregate="average"),)}

    def shown(self) -> Report:
        eager = result(model(), launch(0.09, notes=self.busy, **self.share(0.33)))
        return report([eager, result(model("onnxruntime"), launch(0.01, **self.share(1.0)))])

    def test_one_between_rows_measured_under_different_load_is_marked_in_every_format(self) -> None:
        why = "measured under different load: got 33 % and 100 % of the CPU time they wanted"
        shown = self.shown()
        texts = {
            "screen": ScreenReporter().render(shown),
            "markdown": MarkdownReporter().render(shown),
            "html": HtmlReporter().render(shown),
        }
        for name, text in texts.items():
            words = " ".join(text.split())
            assert re.search(r"\b(8\.9|9\.0)\d \?", words), name
            assert why in words, name
            assert "--interleave --repeat 6" in words, name
        (_, row) = csv.DictReader(io.StringIO(reporter_named("csv").render(shown)))
        assert float(row["vs_eager"]) == pytest.approx(9, rel=0.02)
        assert row["vs_eager_doubt"] == why
        body = json.loads(JsonReporter().render(shown))
        assert [r["model"]["vs_eager_doubt"] for r in body["results"]] == [None, why]

    def test_one_between_rows_of_like_conditions_is_not_marked(self) -> None:
        for notes, share in (((), 1.0), (self.busy, 0.33)):
            rows = model_rows(
                report(
                    [
                        result(model(runtime), launch(latency, notes=notes, **self.share(share)))
                        for runtime, latency in (("torch-eager", 0.03), ("onnxruntime", 0.01))
                    ]
                )
            )
            assert [row.speedup_doubt for row in rows] == [None, None]
            assert rows[1].speedup == pytest.approx(3, rel=0.02)

    def test_launches_that_alternated_are_compared_block_by_block(self) -> None:
        """The machine slows down threefold; every block has the true ratio, the medians of unequal halves do not."""
        factors = (1.0, 1.0, 3.0, 3.0, 3.0)
        eager = [launch(0.03 * f, position=2 * n, block=n, notes=self.busy) for n, f in enumerate(factors)]
        other = [launch(0.01 * f, position=2 * n + 1, block=n) for n, f in enumerate(factors[:4])]
        rows = model_rows(report([result(model(), *eager), result(model("onnxruntime"), *other)]))
        assert rows[1].speedup == pytest.approx(3, rel=0.02)
        assert rows[1].speedup_doubt is None

    def stalled(self, typical_s: float, mean_s: float, **fields: Any) -> Launch:
        """Calls of `typical_s`, with stalls so that items ÷ time is `1 / mean_s`."""
        made_up = launch(typical_s, **fields)
        rate, *others = made_up.measurements
        return msgspec.structs.replace(made_up, measurements=(msgspec.structs.replace(rate, value=1 / mean_s), *others))

    def test_one_that_is_faster_by_one_basis_and_slower_by_the_other_is_marked_in_every_format(self) -> None:
        """What was seen: 1,426 items/s beside eager's 1,997, and 4.03 times as fast by the median of the calls."""
        eager = result(model(), self.stalled(0.0004, 1 / 1997))
        other = result(model("torch-compile"), self.stalled(0.0004 / 4.03, 1 / 1426))
        shown = report([eager, other])
        why = r"slower by throughput \(0\.71 ×\), faster by p50 latency \((4\.0\d|3\.9\d) ×\)"
        for reporter in (ScreenReporter(), MarkdownReporter(), HtmlReporter()):
            words = " ".join(reporter.render(shown).split())
            assert "0.71 ?" in words
            assert re.search(why, words)
        (first, row) = csv.DictReader(io.StringIO(reporter_named("csv").render(shown)))
        assert float(row["vs_eager"]) == pytest.approx(float(row["items_per_s"]) / float(first["items_per_s"]))
        assert row["vs_eager_basis"] == "throughput"
        assert re.match(why, row["vs_eager_doubt"])
        told = json.loads(JsonReporter().render(shown))["results"][1]["model"]
        assert told["vs_eager"] == pytest.approx(1426 / 1997)

    @pytest.mark.parametrize("interleaved", [True, False])
    def test_one_of_six_launches_has_its_interval_in_every_format(self, interleaved: bool) -> None:
        block = iter(range(6)) if interleaved else iter([None] * 6)
        pairs = [
            (0.03 * f, 0.01 * f * g, next(block))
            for f, g in zip((1, 1.1, 0.9, 1, 1.05, 1), (1, 1, 1.01, 1, 0.98, 1.02), strict=True)
        ]
        eager = [launch(a, position=2 * n, block=b) for n, (a, _, b) in enumerate(pairs)]
        other = [launch(a, position=2 * n + 1, block=b) for n, (_, a, b) in enumerate(pairs)]
        shown = report([result(model(), *eager), result(model("onnxruntime"), *other)])
        against = model_rows(shown)[1].against
        assert against is not None
        assert against.interval is not None
        assert against.interval.low < 3 < against.interval.high
        assert against.interval.low <= against.value <= against.interval.high
        shown_as = f"{against.value:.2f} [{against.interval.low:.2f}–{against.interval.high:.2f}]"
        assert shown_as in screen(*shown.run.results, width=120)
        (_, row) = csv.DictReader(io.StringIO(reporter_named("csv").render(shown)))
        assert float(row["vs_eager_low"]) == against.interval.low
        assert float(row["vs_eager_high"]) == against.interval.high

    def test_one_between_rows_that_count_different_things_is_of_their_latency_and_says_so(self) -> None:
        rows = [
            result(model(items=None), launch(0.03, items=None)),
            result(model("onnxruntime"), launch(0.01, items=4)),
        ]
        shown = report(rows)
        assert re.search(r"(2\.9|3\.0)\d \(p50\)", screen(*rows, width=120))
        (_, row) = csv.DictReader(io.StringIO(reporter_named("csv").render(shown)))
        assert row["vs_eager_basis"] == "p50 latency"


def test_a_models_memory_is_one_labelled_number_wherever_it_is_shown() -> None:
    """Not the 614 MiB of one column beside the 198 MiB of PSS in another, which other workers share."""
    peaks = {"memory.peak_pss": 198.0, "memory.peak_rss": 620.0}
    more = tuple(figure(name, size * 2**20, unit="B", source="process") for name, size in peaks.items())
    shown = report([result(model(), launch(0.01, more=more))])
    assert re.search(r"RSS\n.*614 MiB\n", screen(*shown.run.results, width=100))
    page = HtmlReporter().render(shown)
    assert "614 MiB RSS</td>" in page
    assert "198 MiB PSS" not in page
    assert "model&#x27;s peak memory (RSS)" in page


class TestWrongAnswers:
    wrong = "output logits: relative L2 error 0.3 exceeds 0.0001"

    def one(self) -> Result:
        """Five launches were right, one was wrong: none counts."""
        good = [launch(0.001234, position=p) for p in range(5)]
        facts = {"check": check(0.3, ok=False, detail=self.wrong)}
        bad = launch(0.001234, position=5, status=Status.FAILED, reason=Reason.INVALID, facts=facts)
        return result(model("onnxruntime"), *good, bad, status=Status.FAILED, reason=Reason.INVALID, detail=self.wrong)

    def test_a_fast_wrong_answer_has_no_latency_anywhere(self) -> None:
        shown = report([result(model(), launch(0.04)), self.one()])
        text = ScreenReporter().render(shown)
        assert "FAILED invalid: output logits" in " ".join(text.split())
        for words in (text, MarkdownReporter().render(shown).partition("<details>")[0]):
            assert "1.2" not in words.replace("1.24", "")
        assert [row.speedup for row in model_rows(shown)] == [1.0, None]

    def test_other_failures_keep_the_numbers_of_the_launches_that_went_well(self) -> None:
        good = [launch(0.005, position=p) for p in range(5)]
        bad = Launch(job="x", status=Status.FAILED, reason=Reason.TIMED_OUT, position=5)
        text = screen(result(model(), *good, bad, status=Status.FAILED, reason=Reason.TIMED_OUT, detail="60 s"))
        assert "FAILED timed out: 60 s (1 of 6 launches failed)" in " ".join(text.split())
        assert "5.0" in text or "4.99" in text


class TestFacts:
    def test_a_build_is_that_of_the_launches_that_built(self) -> None:
        built = launch(0.01, facts={"build": steps(*BUILT, ("reference", 30.0))})
        cached = [launch(0.01, position=p, facts={"build": steps(*BUILT, cached=True)}) for p in range(1, 6)]
        assert built_in(result(model("onnxruntime"), built, *cached)) == [pytest.approx(6.1)]
        assert built_in(result(model("onnxruntime"), *cached)) == [0.0]
        assert built_in(result(model(), launch(0.01))) == [None]
        assert " cached " in screen(result(model("onnxruntime"), *cached))

    def test_a_warm_up_launch_may_be_the_one_that_built(self) -> None:
        warm = launch(0.01, facts={"build": steps(*BUILT)}, warmup=True)
        rest = launch(0.01, position=1, facts={"build": steps(*BUILT, cached=True)})
        assert built_in(result(model("onnxruntime"), warm, rest)) == [pytest.approx(6.1)]

    def test_a_profile_may_be_the_one_that_built(self) -> None:
        cached = launch(0.01, facts={"build": steps(*BUILT, cached=True)})
        profile = Launch(job="p", status=Status.OK, facts={"build": steps(*BUILT)})
        found = built_in(result(model("onnxruntime"), cached), result(model("onnxruntime", profile=True), profile))
        assert found[0] == pytest.approx(6.1)
        other = built_in(result(model("onnxruntime"), cached), result(model("openvino", profile=True), profile))
        assert other[0] == 0.0

    def test_each_launch_that_compiles_counts(self) -> None:
        times = (10.0, 12.0, 30.0)
        launches = [launch(0.01, position=p, facts={"build": steps(("compile", t))}) for p, t in enumerate(times)]
        assert built_in(result(model("torch-compile"), *launches)) == [12.0]

    def test_the_worst_check_of_all_launches_counts(self) -> None:
        checks = [check(1e-6), check(5e-5), check(2e-6)]
        found = checked(result(model(), *(launch(0.01, position=p, facts={"check": c}) for p, c in enumerate(checks))))
        assert found is not None
        assert (found.error, found.ok, found.claimed) == (5e-5, True, True)

    def test_whole_numbers_are_judged_by_how_many_are_equal(self) -> None:
        facts = {"check": {"ok": True, "detail": "", "figures": {"max_abs": 1.0, "equal": 0.998}}}
        assert "99.8 % ✓" in screen(result(model(), launch(0.01, facts=facts)))

    def test_steps_that_went_well_or_not(self) -> None:
        exported = result(model("onnxruntime"), launch(0.01, facts={"build": steps(*BUILT)}))
        assert (step_outcome(exported, "export"), step_outcome(exported, "convert")) == (True, None)
        assert step_outcome(failed(model("onnxruntime"), "in export: no"), "export") is False

    def test_shares_of_operators_add_up(self) -> None:
        (row,) = model_rows(report([profiled("torch-eager", OPERATORS)]))
        found = operators(row)
        assert sum(o.share for o in found) == pytest.approx(1)
        assert [found[0].op, found[-1].op] == ["aten::op0", "other"]


def test_words_for_counts_and_errors() -> None:
    assert [count_words(n) for n in (42, 1433, 109_482_240, 999_990_000, 7_240_000_000)] == [
        *("42", "1,433", "109.5 M", "1 B", "7.24 B")
    ]
    assert [error_words(e) for e in (2e-6, 0.013, 0.0, 1e-12, math.inf, None)] == [
        *("2e-6", "1e-2", "0", "1e-12", "inf", "")
    ]


def odd_results() -> list[Result]:
    """What no run should be like, and some are."""
    text = "\x1b[31m | `x` <b>\n" + "w" * 300
    empty = Launch(job="e", status=Status.OK, facts={"check": {}, "build": [], "runtime": None})
    wrong = figure("latency", math.nan, math.inf, source="loop")
    bare = Launch(job="n", status=Status.OK, measurements=(wrong, figure("memory.host", math.nan, unit="B")))
    strange = {
        "check": {"ok": True, "figures": {"relative_l2": "?"}},
        "build": [{"step": None}],
        "model": {"flops": "x", "inputs": [{"shape": "?"}]},
    }
    return [
        result(model(), empty),
        result(model("a"), bare),
        result(model("b"), launch(1e-12, samples=3, facts=strange, notes=(Note(text=text, evidence=text),))),
        result(model(text, class_=text, place=text, identity=text, parameters=0, inputs=()), launch(5000.0, samples=2)),
        failed(model("c"), text, Reason.CRASHED),
        failed(model("d", profile=True), "in run: no"),
        result(model("f"), launch(0.01), status=Status.INTERRUPTED),
        result(model("g"), status=Status.PENDING),
        result(model("h"), status=Status.SKIPPED, withheld=text, notes=(text,)),
        profiled("i", {text: math.nan}),
    ]


@pytest.mark.parametrize("name", REPORTERS.built_in)
def test_any_result_of_a_model_is_rendered(name: str) -> None:
    shown = report(odd_results(), log_tails={"bert.D0": ["last words"]})
    text = reporter_named(name).render(shown)
    assert text.endswith("\n")
    if name == "screen":
        assert all(len(line) <= 80 and line.isprintable() for line in text.splitlines())
        assert "profile of d on cpu in fp32 FAILED in run: no" in text
    if name == "markdown":
        assert "<b>" not in re.sub(r"(`+) ?.*? ?(?<!`)\1(?!`)", "", text)


class TestOtherFormats:
    def test_markdown_has_a_table_for_each_model(self) -> None:
        text = MarkdownReporter().render(report([*made.bert(), profiled("onnxruntime", OPERATORS)]))
        assert text.count("#### ") == 1
        assert "| `1` | `onnxruntime` | 28.9" in text
        assert "`FAILED in export: unsupported operator aten::foo (bert.py:21 → modeling_bert.py:310)`" in text
        assert "| `aten::op3` |" in text
        tables = [block for block in text.split("\n\n") if block.startswith("|")]
        assert all(len({line.count(" | ") for line in block.splitlines()}) == 1 for block in tables)

    def test_html_has_a_section_with_the_same_table_and_the_operators(self) -> None:
        text = HtmlReporter().render(report([*made.bert(), profiled("onnxruntime", OPERATORS)]))
        section = text.partition('id="models"')[2].partition("</section>")[0]
        assert "22.4 GFLOP an item" in section
        assert "FAILED in export: unsupported operator aten::foo" in section
        assert "Where the time goes: onnxruntime on cpu in fp32" in section
        assert 'href="#models"' in text
        results = text.partition('id="results"')[2].partition("</table>")[0]
        assert "op.time" not in results
        assert "time.load" not in results
        assert "latency" in results

    @pytest.mark.parametrize(("runtimes", "opened"), [(1, 1), (4, 0)])
    def test_html_folds_tables_of_operators_where_they_are_many(self, runtimes: int, opened: int) -> None:
        profiles = [profiled(f"runtime{n}", OPERATORS) for n in range(runtimes)]
        text = HtmlReporter().render(report([*made.bert(), *profiles]))
        section = text.partition('id="models"')[2].partition("</section>")[0]
        assert section.count("Where the time goes") == runtimes
        assert len(re.findall(r"<details[^>]* open[^>]*><summary[^>]*>Where the time goes", section)) == opened

    def test_html_escapes_what_comes_from_a_script(self) -> None:
        odd = model(class_="<script>bad()</script>", place='"><b>', identity="<img>")
        text = HtmlReporter().render(
            report([result(odd, launch(0.01)), result(odd, status=Status.SKIPPED, withheld="<i>")])
        )
        assert "<script>bad()" not in text
        assert "<img>" not in text
        assert "<i>" not in text

    def test_a_run_without_models_has_no_such_section(self) -> None:
        from example_reports import ordinary_report

        text = HtmlReporter().render(ordinary_report())
        assert 'id="models"' not in text
        assert "#models" not in text

    def test_json_says_what_it_was_measured_on_even_if_it_failed(self) -> None:
        body = json.loads(JsonReporter().render(report(made.bert())))
        ok, other, bad = body["results"][:3]
        assert (other["model"]["runtime"], other["model"]["class"]) == ("onnxruntime", "BertModel")
        assert other["model"]["vs_eager"] == pytest.approx(1.43, abs=0.02)
        assert ok["parameters"] == {"batch_size": "1"}
        assert bad["model"]["runtime"] == "openvino"
        assert bad["launches"][0]["facts"]["failure"]["stage"] == "export"
        assert {"check", "runtime", "build"} <= other["launches"][0]["facts"].keys()


def under_load(streams: int, rate: float, latency_s: float) -> Result:
    """As a model measures it: one caller in its loop, several side by side."""
    labels = {"streams": str(streams)}
    beside = (
        figure("throughput.streams", rate, unit="calls/s", labels=labels),
        figure("latency.streams", latency_s, labels=labels),
    )
    alone = launch(latency_s if streams == 1 else 0.010, items=None, more=beside if streams > 1 else ())
    return result(model(streams=streams, items=None), alone, parameters={"streams": str(streams)})


def test_callers_side_by_side_give_a_curve_with_its_knee() -> None:
    """Four callers wait twice as long for the same throughput as two."""
    made = report([under_load(1, 100.0, 0.010), under_load(2, 190.0, 0.0105), under_load(4, 195.0, 0.0205)])
    text = ScreenReporter().render(made)
    curve = text.partition("throughput against latency: torch-eager")[2].splitlines()
    rows = {line.split()[0]: line for line in curve if line.strip().startswith("streams=")}
    assert list(rows) == ["streams=1", "streams=2", "streams=4"]
    assert [name for name, line in rows.items() if "←" in line] == ["streams=2"]
    assert "190" in rows["streams=2"]
    assert "10.5 ms" in rows["streams=2"]
    assert "latency over throughput" not in text, "drawings are for HTML alone"
    page = HtmlReporter().render(made)
    (line,) = re.findall(r'<polyline[^>]* points="([^"]*)"', page.partition("Latency over throughput")[2])
    places = [tuple(map(float, place.split(","))) for place in line.split()]
    assert [x for x, _ in places] == sorted(x for x, _ in places), "more callers, more throughput"
    assert places[1][1] - places[2][1] > 5 * (places[0][1] - places[1][1]) > 0, "which hardly wait, until they do"
    knee = re.search(r'<line x1="([\d.]+)"[^>]*/><text[^>]*>knee', page)
    assert knee is not None
    assert float(knee[1]) == places[1][0]


def test_one_load_is_no_curve() -> None:
    assert "throughput against latency" not in ScreenReporter().render(report([under_load(4, 195.0, 0.0205)]))
