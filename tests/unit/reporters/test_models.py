"""Tables of models: what stands in them, what is compared with what, and what is never shown as a number."""

from __future__ import annotations

import json
import math
import re

import model_runs as made
import pytest
from model_runs import BUILT, check, failed, figure, launch, model, profiled, report, result, steps

from benchwright.domain.model import FoundInput
from benchwright.domain.run import Launch, Note, Result
from benchwright.domain.status import Reason, Status
from benchwright.reporters.details import details
from benchwright.reporters.html import HtmlReporter
from benchwright.reporters.markdown import MarkdownReporter
from benchwright.reporters.model_columns import error_words
from benchwright.reporters.model_facts import checked, step_outcome
from benchwright.reporters.model_rows import model_rows, operators
from benchwright.reporters.model_table import count_words
from benchwright.reporters.registry import BUILT_IN, reporter_named
from benchwright.reporters.run_json import JsonReporter
from benchwright.reporters.screen import ScreenReporter

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

    @pytest.mark.parametrize("items", [None, 0])
    def test_where_no_item_is_known_calls_are_counted(self, items: int | None) -> None:
        text = screen(result(model(items=items), launch(0.01)))
        assert "calls/s" in text
        assert "items/s" not in text

    def test_items_and_arithmetic_of_a_file_are_what_its_launch_told(self) -> None:
        file = model("onnxruntime", script=None, file="/home/user/net.onnx", class_="net.onnx", inputs=(), items=None)
        text = screen(result(file, launch(0.01, items=4, facts={"model": {"items": 4, "parameters": 7}})))
        assert "89.6 GFLOP " in text  # four times 22.4
        assert "items/s" in text

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

    def test_the_precision_that_was_really_used_is_shown(self) -> None:
        facts = {"runtime": {"name": "torch-eager", "precision": "bf16"}}
        text = screen(result(model(), launch(0.01, facts=facts)))
        assert "in bf16" in text
        assert "fp32 was asked for; the model computes in bf16" in text

    def test_shapes_of_one_model_are_told_apart(self) -> None:
        shapes = [(FoundInput(name="x", shape=(1, n), dtype="int64"),) for n in (16, 17)]
        text = screen(*(result(model(identity=f"{i}{'a' * 15}", inputs=s), launch(0.01)) for i, s in enumerate(shapes)))
        assert "1×16" in text
        assert "1×17" in text

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
        crashed = Launch(job="x.D0", status=Status.FAILED, reason=Reason.CRASHED, detail="exit code 1")
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
        facts = {"check": check(0.5, detail="non-deterministic: two calls differ by 0.5")}
        text = screen(result(model(), launch(0.01, facts=facts)))
        assert "5e-1 ~" in text
        assert "⚠ non-deterministic: two calls differ by 0.5" in text

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


class TestWrongAnswers:
    wrong = "output logits: relative L2 error 0.3, tolerated is 0.0001"

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
        assert (found.error, found.ok, found.deterministic) == (5e-5, True, True)

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
        result(model("b"), launch(1e-12, samples=3, facts=strange, notes=(Note(text=text, figure=text),))),
        result(model(text, class_=text, place=text, identity=text, parameters=0, inputs=()), launch(5000.0, samples=2)),
        failed(model("c"), text, Reason.CRASHED),
        failed(model("d", profile=True), "in run: no"),
        result(model("f"), launch(0.01), status=Status.INTERRUPTED),
        result(model("g"), status=Status.PENDING),
        result(model("h"), status=Status.SKIPPED, withheld=text, notes=(text,)),
        profiled("i", {text: math.nan}),
    ]


@pytest.mark.parametrize("name", BUILT_IN)
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
        assert len(re.findall(r"<details[^>]* open", section)) == opened

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
