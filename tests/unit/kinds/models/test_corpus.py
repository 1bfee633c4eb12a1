"""Many models at once: which result counts, how far models get, why no further, and how fast they are."""

from __future__ import annotations

import json
import math
from typing import Any

import builders
import pytest
from corpus_runs import corpus_run
from example_reports import MACHINE
from model_runs import BUILT, check, failed, launch, model, result, steps
from msgspec.structs import replace

from benchwright.core.aggregates import aggregate
from benchwright.core.note import Note
from benchwright.core.run import Result, Run
from benchwright.core.status import Reason, Status
from benchwright.kinds.models.corpus.causes import BY_VALUES, STAGES, cause_words
from benchwright.kinds.models.corpus.document import CorpusReport, corpus_json, corpus_markdown, corpus_text
from benchwright.kinds.models.corpus.entries import Corpus, corpus_of_reports
from benchwright.kinds.models.corpus.page import corpus_html
from benchwright.kinds.models.corpus.summaries import RuntimeSummary, causes_of, runtime_summaries, task_summaries
from benchwright.kinds.models.corpus.tables import matrix_table
from benchwright.kinds.models.report.rows import model_rows
from benchwright.kinds.models.report.sections import contribution
from benchwright.kinds.models.report.table import built_words
from benchwright.report.base import Report
from benchwright.results.after_run import summaries_of

EAGER, ORT = "torch-eager", "onnxruntime"


def report_of_run(run: Run) -> Report:
    return Report(run=run, summaries=summaries_of(run), aggregate=aggregate)


def run_of(*results: Result, id: str = "r", **fields: Any) -> Run:
    return builders.run(*results, id=id, uid=id, **({"machine": MACHINE} | fields))


def corpus(*runs: Run) -> Corpus:
    return corpus_of_reports(map(report_of_run, runs))


def summaries(found: Corpus) -> dict[str, RuntimeSummary]:
    return {str(each.variant): each for each in runtime_summaries(found)}


def built(seconds: float, **fields: Any) -> Any:
    return launch(seconds, facts={"build": steps(*BUILT), **fields.pop("facts", {})}, **fields)


def named(number: int, runtime: str, **fields: Any) -> Any:
    """A model of its own script."""
    return model(runtime, script=f"/m/net{number}.py", identity=f"{number:016x}", class_=f"Net{number}", **fields)


def test_the_speedup_is_the_geometric_mean_over_right_results_only() -> None:
    wrong = {"check": check(ok=False)}
    made = run_of(
        result(named(1, EAGER), launch(0.04)),
        result(named(1, ORT), built(0.01)),
        result(named(2, EAGER), launch(0.01)),
        result(named(2, ORT), built(0.01)),
        result(named(3, EAGER), launch(0.04)),
        result(named(3, ORT), built(0.001, facts=wrong), status=Status.FAILED, reason=Reason.INVALID),
        failed(named(4, EAGER), "in run: it broke"),
        result(named(4, ORT), built(0.01)),
    )
    found = summaries(corpus(made))[ORT]
    eager = 0.04 / 0.01
    assert found.speedup == pytest.approx(math.sqrt(eager * 1.0), rel=0.02)
    assert (found.models, found.right, found.compared) == (4, 3, 2)
    assert found.success == 0.75
    assert summaries(corpus(made))[EAGER].speedup is None


def test_the_arithmetic_of_a_model_is_known_though_a_later_result_does_not_tell_it() -> None:
    made = run_of(
        result(named(1, EAGER), launch(0.04)),
        failed(named(1, ORT), "in load: it broke", facts={"model": {"parameters": 7}}),
    )
    (found,) = corpus(made).models
    assert found.flops == 22.4e9


def test_the_page_is_headed_with_what_it_covers_and_says_it_once() -> None:
    one = corpus(run_of(result(named(1, EAGER), launch(0.01))))
    page = corpus_html(CorpusReport(corpus=one, caches=("base",), results=()))
    assert "<h1>1 model of 1 script on 1 runtime</h1>" in page
    assert "1 script" not in page.partition("</h1>")[2]
    assert f"measured on {MACHINE.hostname}" in page


def test_a_model_that_waits_counts_neither_for_nor_against_a_runtime() -> None:
    waits = replace(result(named(2, EAGER)), status=Status.PENDING)
    cut = replace(result(named(3, EAGER)), status=Status.INTERRUPTED)
    found = corpus(run_of(result(named(1, EAGER), launch(0.04)), waits, cut))
    eager = summaries(found)[EAGER]
    assert (eager.models, eager.waiting, eager.right, eager.success) == (1, 2, 1, 1.0)
    assert causes_of(found) == []
    shown = [cell.text for row in matrix_table(found).rows for cell in row.cells]
    assert shown.count("not yet") == 2


def test_a_doubtful_speedup_is_left_out_and_told() -> None:
    busy = Note(text="ran while the machine was busy", evidence="got 50 %", kind="busy")
    made = run_of(
        result(named(1, EAGER), launch(0.04)),
        result(named(1, ORT), built(0.01)),
        result(named(2, EAGER), launch(0.04)),
        result(named(2, ORT), replace(built(0.001), notes=(busy,))),
    )
    found = summaries(corpus(made))[ORT]
    assert (found.compared, found.doubtful) == (1, 1)
    assert found.speedup == pytest.approx(4, rel=0.02)
    text = corpus_text(CorpusReport(corpus=corpus(made), caches=("A",), results=()), 80)
    assert "1 speed-ups measured under unlike conditions are left out" in " ".join(text.split())
    assert "ran while the machine was busy (1 result)" in text


def test_each_failure_is_counted_at_the_stage_it_keeps_a_model_from() -> None:
    made = run_of(
        result(named(1, EAGER), launch(0.04)),
        result(named(1, ORT), built(0.01)),
        result(named(2, EAGER), launch(0.04)),
        result(named(2, ORT), built(0.05)),
        failed(named(3, ORT), "in script: OSError: no weights"),
        failed(named(4, ORT), "in export: Unsupported: control flow"),
        failed(named(5, ORT), "in convert: no kernel"),
        failed(named(6, ORT), "in first_run: bad shape"),
        result(named(7, ORT), built(0.01, facts={"check": check(claimed=False, detail="its calls differ")})),
        result(
            named(8, ORT), status=Status.SKIPPED, reason=Reason.LACKS_CAPABILITY, detail="onnxruntime not installed"
        ),
    )
    found = summaries(corpus(made))
    assert found[ORT].passed == dict(zip(STAGES, (8, 6, 5, 4, 3, 2, 1), strict=True))
    assert found[EAGER].passed == dict(zip(STAGES, (2, 2, None, None, 2, 2, None), strict=True))
    causes = {cause.cause: (cause.stage, cause.count) for cause in causes_of(corpus(made))}
    assert causes["OSError: no weights"] == ("built", 1)
    assert causes["skipped: onnxruntime not installed"] == ("built", 1)
    assert causes["Unsupported: control flow"] == ("exported", 1)
    assert causes["slower than eager"] == ("faster", 1)
    assert causes["outputs not judged: its calls differ"] == ("correct", 1)
    assert sum(count for _, count in causes.values()) == 8 - 1  # all but the one that passed everything


def of_task(task: str, made: Result) -> Result:
    return replace(made, benchmark=replace(made.benchmark, labels={"task": task}))


def test_models_are_counted_by_their_task() -> None:
    made = run_of(
        of_task("text", result(named(1, EAGER), launch(0.04))),
        of_task("text", result(named(1, ORT), built(0.01))),
        of_task("text", result(named(2, EAGER), launch(0.04))),
        of_task("text", failed(named(2, ORT), "in export: Unsupported: control flow")),
        of_task("vision", failed(named(3, EAGER), "in script: OSError: no weights")),
    )
    found = {(t.task, str(t.runtime.variant)): t.runtime for t in task_summaries(corpus(made))}
    assert [(key, s.models, s.passed["ran"], s.right) for key, s in found.items()] == [
        (("text", EAGER), 2, 2, 2),
        (("text", ORT), 2, 1, 1),
        (("vision", EAGER), 1, 0, 0),
    ]
    assert found["text", ORT].speedup == pytest.approx(4, rel=0.02)
    assert task_summaries(corpus(run_of(of_task("text", result(named(1, EAGER), launch(0.04)))))) == []


def test_what_the_time_went_into_makes_no_other_cause() -> None:
    late = "it ran longer than 60 s; raise the timeout if it needs more"
    made = run_of(
        *(
            result(named(n, ORT), status=Status.FAILED, reason=Reason.TIMED_OUT, detail=f"{late} ({part} {n} s)")
            for n, part in enumerate(("reference 0.1 s, export", "export", "export 2 s, optimise"))
        ),
        *(
            failed(named(n, ORT), f"in export: {BY_VALUES}, which are not known while it is traced: Eq(u{n}, 1)")
            for n in (5, 6, 7)
        ),
    )
    assert [(cause.count, cause.stage) for cause in causes_of(corpus(made))] == [
        (3, "exported"),
        (2, "exported"),
        (1, "compiled"),
    ]


@pytest.mark.parametrize(
    ("detail", "stage"),
    [
        ("ended by SIGSEGV in: loading it and its first call", "ran"),
        ("it ran longer than 60 s (export 30.7 s, optimise 27.4 s, what came after it 0.123 s)", "ran"),
        ("it ran longer than 60 s (making the model and trying a call of it 1e+03 s)", "built"),
        ("it ran longer than 60 s (export 3 s, checking its outputs 50 s)", "correct"),
        ("exit code 1", "built"),
    ],
)
def test_the_stage_is_the_part_in_which_a_launch_ended(detail: str, stage: str) -> None:
    made = run_of(result(named(1, ORT), status=Status.FAILED, reason=Reason.TIMED_OUT, detail=detail))
    assert [cause.stage for cause in causes_of(corpus(made))] == [stage]


def test_causes_are_the_same_whatever_the_names_and_numbers() -> None:
    assert cause_words("no file '/a/b/c.json' of 12 MB\nmore") == cause_words("no file '/d/e.json' of 1,300 MB")
    assert cause_words("needs a package: TimmBackbone needs timm") == cause_words("needs a package: Gemma3n needs timm")
    assert cause_words("needs a package: TimmBackbone needs timm") != cause_words("needs a package: Eomt needs scipy")
    assert cause_words("KeyError: 'a'") != cause_words("OSError: 'a'")
    assert len(cause_words("x" * 1000)) <= 160


def test_the_newest_result_counts_unless_it_is_not_there_yet() -> None:
    old = run_of(result(named(1, EAGER), launch(0.04)), id="old", started="2026-11-14T10:00:00+00:00")
    new = run_of(result(named(1, EAGER), launch(0.02)), id="new", started="2026-11-15T10:00:00+00:00")
    pending = replace(result(named(1, EAGER)), status=Status.PENDING)
    newest = run_of(pending, id="newest", started="2026-11-16T10:00:00+00:00")
    for runs in ((old, new, newest), (newest, new, old)):
        (found,) = corpus(*runs).models
        (entry,) = found.entries.values()
        assert entry.run == "new"
        assert entry.latency_s == pytest.approx(0.02, rel=0.02)


def test_results_of_unlike_machines_never_share_a_column() -> None:
    other = replace(MACHINE, hostname="fast-1", cpu="another", cores=64)
    here = run_of(result(named(1, EAGER), launch(0.04)), id="a")
    there = run_of(result(named(1, EAGER), launch(0.001)), id="b", machine=other)
    found = corpus(here, there)
    assert len(found.models) == 1
    assert sorted(map(str, found.variants)) == sorted([f"{EAGER} (fast-1)", f"{EAGER} ({MACHINE.hostname})"])


def test_precision_device_and_threads_are_columns_of_their_own() -> None:
    made = run_of(
        result(named(1, ORT), built(0.01)),
        result(named(1, ORT, precision="bf16"), built(0.01)),
        result(named(1, ORT, threads=1), built(0.01)),
    )
    assert set(map(str, corpus(made).variants)) == {ORT, f"{ORT} 1 thread", f"{ORT} bf16"}


def test_the_matrix_of_many_runtimes_fits_and_its_models_can_be_told_apart() -> None:
    twins = [
        result(replace(named(1, ORT, threads=threads), identity=letter * 16, class_="Net"), built(0.01))
        for threads in (1, 2, 3, 4, 5)
        for letter in "ab"
    ]
    text = corpus_text(CorpusReport(corpus=corpus(run_of(*twins)), caches=("A",), results=()), 80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert all(f"\n   bert.py::Net {letter * 8} " in text for letter in "ab")
    assert "no room here for" in text


def test_models_of_one_script_keep_their_classes_and_namesakes_their_identities() -> None:
    twins = [replace(named(1, EAGER), class_=name, identity=name * 16) for name in ("a", "b")]
    made = run_of(*(result(twin, launch(0.01)) for twin in twins), result(named(2, EAGER), launch(0.01)))
    names = [found.name for found in corpus(made).models]
    assert len(set(names)) == 3
    assert any("::a" in name for name in names)


def test_every_format_tells_the_same_numbers() -> None:
    found = corpus(corpus_run(30, samples=20))
    report = CorpusReport(corpus=found, caches=("A",), results=())
    (ort,) = (each for each in runtime_summaries(found) if str(each.variant) == ORT)
    told = json.loads(corpus_json(report))
    (record,) = (each for each in told["runtimes"] if each["runtime"] == ORT)
    assert (record["models"], record["right"], record["speedup_models"]) == (ort.models, ort.right, ort.compared)
    assert record["speedup"] == ort.speedup
    assert len(told["models"]) == 30
    assert ort.speedup is not None
    for text in (corpus_text(report, 80), corpus_markdown(report), corpus_html(report)):
        assert f"{ort.speedup:.2f}" in text
        assert "OSError" in text
    assert all(len(line) <= 80 for line in corpus_text(report, 80).splitlines())


def test_what_has_no_model_is_told_with_its_own_exception() -> None:
    found = corpus(corpus_run(1))
    causes = {cause.cause: cause for cause in causes_of(found)}
    assert causes["ModuleNotFoundError: No module named '…'"].models == ("broken.py",)
    assert causes["it calls no model of torch; time all of it with --as command"].models == ("empty.py",)
    assert found.withheld.keys() == {"train.py::Trained"}


def test_many_models_are_rows_of_one_table_not_sections() -> None:
    few, many = (
        contribution(report_of_run(corpus_run(10, samples=20))),
        contribution(report_of_run(corpus_run(60, samples=20))),
    )
    assert len(few.sections) == 10 + 1  # and the one that was not measured
    assert few.page is None
    assert [section.heading[0] for section in many.sections] == [
        "Corpus",
        "Runtimes",
        "How far they get",
        "Why not",
        "Tasks",
    ]
    assert many.sections[0].tables[0].title == "Models and runtimes"
    assert many.page is not None
    assert "60 models" in many.page()
    places = [many.page().index(f'<section id="{name}">') for name in ("models", "runtimes", "tasks")]
    assert places == sorted(places)
    assert len(many.bodies) == 241


def test_a_brief_report_has_what_run_json_needs_and_no_sections() -> None:
    report = report_of_run(corpus_run(2, samples=20))
    brief, whole = contribution(replace(report, brief=True)), contribution(report)
    assert brief.bodies == whole.bodies
    assert (brief.sections, brief.table, brief.details) == ((), None, {})


def test_names_that_look_like_markup_stay_text() -> None:
    odd = named(1, EAGER, file=None)
    odd = replace(odd, script="/m/<script>alert(1)</script>.py", class_="</script>")
    page = corpus_html(CorpusReport(corpus=corpus(run_of(result(odd, launch(0.01)))), caches=("<b>",), results=()))
    assert "<script>alert" not in page
    assert "<b>" not in page.partition("</style>")[2]


def test_the_matrix_has_a_row_for_each_model_and_all_figures_of_each_runtime() -> None:
    made = run_of(
        result(named(1, EAGER), launch(0.04), labels={"author": "google"}),
        result(named(1, ORT), built(0.01), labels={"author": "google"}),
        failed(named(2, ORT), "in export: no"),
    )
    first, second = matrix_table(corpus(made)).records()
    assert first["corpus"] == "m"
    assert first["label.author"] == "google"
    assert first[f"{ORT}.vs_eager"] == pytest.approx(4, rel=0.02)
    assert (second[f"{ORT}.status"], second[f"{ORT}.kept_from"], second[f"{EAGER}.status"]) == (
        "failed",
        "exported",
        None,
    )


def test_a_model_that_its_zoo_cannot_make_is_not_built() -> None:
    of_zoo = model(EAGER, script=None, zoo="transformers:bert", identity="a" * 16)
    found = corpus(run_of(failed(of_zoo, "in load: no such scale")))
    (entry,) = (entry for each in found.models for entry in each.entries.values())
    assert (entry.ending.kept_from, found.models[0].corpus) == ("built", "transformers")
    assert found.models[0].build == "transformers-bert_aaaaaaaa"


ONLY_BUILT = {"built": {"folder": "/b/k", "onnx": "/b/k/model.onnx", "bytes": 2048, "cached": False}}


def only_built(number: int) -> Any:
    return result(named(number, ORT, stops_after="build"), replace(launch(1.0, facts=ONLY_BUILT), measurements=()))


def test_a_build_neither_replaces_a_measurement_nor_counts_as_one() -> None:
    measured = run_of(
        result(named(1, EAGER), launch(0.04)),
        result(named(1, ORT), launch(0.01)),
        id="a",
        started="2026-01-01T00:00:00+00:00",
    )
    built = run_of(only_built(1), only_built(2), id="b", started="2026-01-02T00:00:00+00:00")
    found = corpus(measured, built)
    entries = {each.class_: {v.runtime: entry for v, entry in each.entries.items()} for each in found.models}
    one, two = entries["Net1"][ORT], entries["Net2"][ORT]
    assert one.latency_s == pytest.approx(0.01, rel=0.05)
    assert one.run == "a"
    assert (two.latency_s, two.ending.status) == (None, "built")
    assert (summaries(found)[ORT].models, summaries(found)[ORT].waiting, summaries(found)[ORT].success) == (1, 1, 1.0)


def test_models_of_another_opset_have_a_column_of_their_own() -> None:
    made = run_of(result(named(1, ORT), launch(0.01)), result(named(1, ORT, onnx_opset=17), launch(0.02)))
    assert sorted(map(str, corpus(made).variants)) == ["onnxruntime", "onnxruntime opset17"]


def test_the_report_says_where_a_build_is() -> None:
    (row,) = model_rows(report_of_run(run_of(only_built(1))))
    words = built_words(row)
    assert words is not None
    assert words.endswith("2 KiB: /b/k/model.onnx")
    (plain,) = model_rows(report_of_run(run_of(result(model(ORT), launch(0.01)))))
    assert built_words(plain) is None
