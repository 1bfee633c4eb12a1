"""An A/B: control and treatment of the same benchmarks, alternating in one ordinary run, and the verdict on it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from benchwright.core.benchmark import REVISION
from benchwright.core.comparison import LEFT_OUT, Comparison, Effect, Verdict
from benchwright.core.decision import Decision
from benchwright.core.errors import Interrupted, InvalidInput
from benchwright.core.metric import CPU_TIME, DURATION, OF_CPU
from benchwright.core.note import Note
from benchwright.core.revision import CONTROL, TREATMENT, Revision, RevisionKind, parse_revision
from benchwright.core.run import Run
from benchwright.core.summary import PEAK_RSS
from benchwright.executors.observer import Observer
from benchwright.regress.builds import BuildRecipe
from benchwright.regress.notify.notice import NoticeOutcome, notice_of
from benchwright.regress.repository import open_repository
from benchwright.regress.revision_paths import in_worktree
from benchwright.regress.sides import Sides, built_sides
from benchwright.report.comparison import ab_body
from benchwright.report.tables.ab import ab_markdown
from benchwright.report.tables.comparison import metric_words
from benchwright.report.text.numbers import percent
from benchwright.results.after_run import exit_code
from benchwright.results.compare import compare_commands, failing, render
from benchwright.runner.run import RunOrder, resolve_order, run

if TYPE_CHECKING:
    from benchwright.regress.notify.notice import Notice

KIND, A_A = "comparison", "A/A"  # label of a run whose sides are the same
_WIDTH = 80  # of a text in a file
_WORST_FIRST = (Verdict.REGRESSED, Verdict.INCONCLUSIVE, Verdict.IMPROVED, Verdict.SAME)


class AbOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Two sides of one target. `treatment` None: what is here now; of a repository, the working tree with all its changes."""

    order: RunOrder
    control: Revision
    treatment: Revision | None = None
    repository: str | None = None  # a folder in it; None: where the user is
    recipe: BuildRecipe = BuildRecipe()
    decision: Decision = Decision()
    fail_on: str = "regressed"


class AbOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict`: the worst of all comparisons; None if nothing could be compared."""

    run: Run
    comparisons: tuple[Comparison, ...]  # one for each pair
    verdict: Verdict | None
    exit_code: int

    @property
    def table(self) -> Comparison:
        """All comparisons as one, between the revisions; each pair under its own name."""
        return _joined(self.run, self.comparisons)

    def rendered(self, format_: str) -> str:
        """As `markdown`, `html`, `csv` or `json`."""
        if format_ == "json":
            body = ab_body(self.table, self.run.id, self.verdict, self.exit_code)
            return json.dumps(body, indent=1, allow_nan=False) + "\n"
        if format_ == "markdown":
            return ab_markdown(self.table)
        return render([self.table], [self.run], format_, _WIDTH)

    def notice(self) -> Notice:
        """The notice to send."""
        found = notice_of([self.table], topic=f"ab {self.run.name}")
        outcome = {0: NoticeOutcome.FINE, 1: NoticeOutcome.REGRESSED}.get(self.exit_code, NoticeOutcome.NOT_MEASURED)
        return replace(found, outcome=outcome, markdown=ab_markdown(self.table, headed=False))


def run_ab(order: AbOrder, observer: Observer | None = None) -> AbOutcome:
    """Measures both sides until the verdict is clear or the budget is spent; Interrupted if asked to stop."""
    observer = observer or Observer()
    order = _with_named_treatment(order)
    _refuse_mixture(order)
    sides = Sides(order.order.options, order.control, order.treatment, order.repository, order.recipe)
    if order.repository is not None and sides.uses(RevisionKind.GIT):
        root = open_repository(order.repository, "--repo-dir").root
        order = replace(order, order=in_worktree(root, order.order))
        sides = replace(sides, options=order.order.options)
    _refuse_what_is_wrong_here(order)
    variations = built_sides(sides, order.order.base, observer)
    options = order.order.options.until(order.decision)
    labels = order.order.labels | {v.side: v.revision for v in variations}
    if variations[0].is_like(variations[1]):
        labels[KIND] = A_A
        observer.on_note("control and treatment are the same: an A/A, which shows the noise of this machine")
    made = run_sides(replace(order.order, options=options, labels=labels, variations=variations), observer)
    return outcome_of(made, fail_on=order.fail_on)


def run_sides(order: RunOrder, observer: Observer) -> Run:
    """As `run`, for what is to end with a verdict: `ab --resume` tells it by its exit code, too."""
    try:
        return run(order, observer)
    except Interrupted as error:
        raise Interrupted(str(error).replace("benchwright run --resume", "benchwright ab --resume")) from None


def outcome_of(made: Run, *, fail_on: str = "regressed") -> AbOutcome:
    """The verdict on a run of two sides, as it was when the run ended."""
    comparisons = tuple(compare_commands(made))
    return AbOutcome(
        run=made,
        comparisons=comparisons,
        verdict=_worst(made, comparisons),
        exit_code=_exit_code(made, comparisons, fail_on),
    )


def _joined(made: Run, comparisons: tuple[Comparison, ...]) -> Comparison:
    """The whole table of an A/B."""
    benchmarks = {r.benchmark.name: r.benchmark for r in made.results}
    revisions = {b.side: b.labels.get(REVISION, "") for b in benchmarks.values()}
    decision = made.decision or Decision()
    alone = [f"{b.pair}: {b.withheld}" for b in benchmarks.values() if b.side and b.withheld]
    lost = [f"{b.pair}: {b.withheld}" for b in benchmarks.values() if b.side == CONTROL and b.withheld]
    effects = tuple(replace(e, benchmark=benchmarks[c.control].pair) for c in comparisons for e in c.effects)
    remarks = dict.fromkeys(note for c in comparisons for note in c.remarks)
    if made.labels.get(KIND) == A_A:
        remarks |= dict.fromkeys(_noise_floor(effects))
    remarks |= dict.fromkeys(
        (
            *_beside_the_point(effects),
            *_another_way(made, effects),
            *_by_cpu_time_alone(effects),
            *_too_small_to_measure(made, effects),
        )
    )
    return Comparison(
        control=revisions.get(CONTROL, ""),
        treatment=revisions.get(TREATMENT, ""),
        margin=decision.margin,
        effects=effects,
        missing=(*(text for c in comparisons for text in c.missing), *alone),
        lost=(*(text for c in comparisons for text in c.lost), *lost),
        doubts=tuple(dict.fromkeys(note for c in comparisons for note in c.doubts)),
        confidence=max((c.confidence for c in comparisons), default=1 - decision.alpha),
        remarks=tuple(remarks),
    )


def _beside_the_point(effects: Sequence[Effect]) -> Iterator[Note]:
    """Where only what is compared beside has regressed: which metrics to name for a verdict without it."""
    regressed = [effect for effect in effects if effect.verdict is Verdict.REGRESSED]
    if not regressed or not all(effect.beside for effect in regressed):
        return
    about = dict.fromkeys(effect.metric for effect in effects if not effect.beside)
    named = ", ".join(dict.fromkeys(map(metric_words, regressed)))
    options = " ".join(f"--metric {metric}" for metric in about)
    yield Note(text=f"only {named} regressed", severity="info", remedy=f"to leave that out, use {options}")


def _another_way(made: Run, effects: Sequence[Effect]) -> Iterator[Note]:
    """Where other load left no verdict, and the CPU time of launches is not compared: a program that reports its own figures
    may run for as long however fast it is, so whether that tells is the user's to say."""
    by_cpu = {effect.benchmark for effect in effects if effect.metric in OF_CPU}
    undecided = [e.benchmark for e in effects if e.interval is None and any(d.kind == LEFT_OUT for d in e.doubts)]
    found = [(r.benchmark.pair, x.measurement(CPU_TIME)) for r in made.results for x in r.counted]
    timed = {pair for pair, cpu in found if cpu is not None and "process" not in cpu.labels}
    if names := [name for name in dict.fromkeys(undecided) if name in timed - by_cpu]:
        remedy = f"if each launch does a fixed amount of work, judge by its CPU time: --metric {CPU_TIME}"
        yield Note(text=f"other load left no verdict on {', '.join(names)}", severity="info", remedy=remedy)


def _by_cpu_time_alone(effects: Sequence[Effect]) -> Iterator[Note]:
    """Where launches waited for a core, and for how long is not known, so that the time of hardly a pair counts."""
    timed = {e.benchmark for e in effects if e.metric in OF_CPU and e.interval is not None}
    unknown = [
        e.benchmark
        for e in effects
        if e.metric == DURATION and e.interval is None and any(d.kind == LEFT_OUT for d in e.doubts)
    ]
    if names := [name for name in dict.fromkeys(unknown) if name in timed]:
        text = f"judged by CPU time alone, which an added sleep does not change: {', '.join(names)}"
        remedy = "use a quieter machine, or pin it to free cores with --cores"
        yield Note(text=text, severity="info", remedy=remedy)


def _too_small_to_measure(made: Run, effects: Sequence[Effect]) -> Iterator[Note]:
    """Of programs that use no more memory than what starts them, the kernel knows no peak."""
    compared = {effect.benchmark for effect in effects if effect.metric == PEAK_RSS}
    names = dict.fromkeys(
        result.benchmark.pair
        for result in made.results
        for launch in result.counted
        if (peak := launch.measurement(PEAK_RSS)) is not None and "bound" in peak.labels
    )
    if left := [name for name in names if name not in compared]:
        text = f"peak memory of {', '.join(left)} is not compared"
        yield Note(text=text, evidence="too small and short to measure", severity="info")


def _noise_floor(effects: Sequence[Effect]) -> Iterator[Note]:
    """Of an A/A: how far two measurements of the same can be apart here."""
    yield Note(text="an A/A: both sides are the same, and any difference is noise", severity="info")
    for effect in effects:
        if effect.verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
            what = f"{effect.benchmark} {metric_words(effect)}: {effect.verdict.value} is a false alarm"
            yield Note(text=what, remedy="use a quieter machine, or pin it to cores with --cores")
        of_time = not effect.beside or effect.metric in OF_CPU
        if effect.interval is not None and effect.ratio > 0 and of_time:
            half = (effect.interval.high - effect.interval.low) / 2 / effect.ratio
            yield Note(
                text=f"{effect.benchmark} {metric_words(effect)}: changes of less than about {percent(half)} go unseen "
                f"here with {min(effect.launches)} pairs of launches",
                severity="info",
            )


def _with_named_treatment(order: AbOrder) -> AbOrder:
    """If the control is a server, the target may name the treatment: `ab openai:NEW --control openai:OLD`."""
    options = order.order.options
    if order.control.kind is not RevisionKind.OPENAI or order.treatment is not None or len(options.targets) != 1:
        return order
    treatment = parse_revision(options.targets[0], "--treatment")
    return replace(order, treatment=treatment, order=replace(order.order, options=replace(options, targets=())))


def _refuse_mixture(order: AbOrder) -> None:
    """Two commands, or two servers, are a target by themselves; everything else varies one."""
    options = order.order.options
    named = options.targets or options.command or options.commands
    for kind, what, written in (
        (RevisionKind.CMD, "command", "cmd:COMMAND"),
        (RevisionKind.OPENAI, "server", "openai:URL"),
    ):
        found = [r for r in (order.control, order.treatment) if r is not None and r.kind is kind]
        if len(found) == 1:
            where = "--treatment" if found[0] is order.control else "--control"
            raise InvalidInput(
                f"is not a {what}, but the other side is one", where=where, remedy=f"write {written} for both"
            )
        if found and named:
            remedy = "drop the target, or compare args:"
            raise InvalidInput(f"two {what}s need no target", where="--control", remedy=remedy)


def _refuse_what_is_wrong_here(order: AbOrder) -> None:
    """Before hours are spent on builds: what is wrong with the target here is wrong on both sides, if it is there at all."""
    options = order.order.options
    named = options.targets or options.command or options.commands
    if named and order.order.resume is None and all(os.path.exists(t.partition("::")[0]) for t in options.targets):
        resolve_order(order.order)


def _worst(made: Run, comparisons: tuple[Comparison, ...]) -> Verdict | None:
    """A treatment that failed where the control did not has regressed."""
    found = {effect.verdict for comparison in comparisons for effect in comparison.effects}
    if any(_has_lost(made, comparison) for comparison in comparisons):
        found.add(Verdict.REGRESSED)
    return next((verdict for verdict in _WORST_FIRST if verdict in found), None)


def _has_lost(made: Run, comparison: Comparison) -> bool:
    return bool(comparison.lost and made.result(comparison.control).counted)


def _exit_code(made: Run, comparisons: tuple[Comparison, ...], fail_on: str) -> int:
    """0 fine · 1 regressed, or what else `--fail-on` says · 3 nothing, or not every control, could be measured."""
    judged = any(effect.interval is not None for comparison in comparisons for effect in comparison.effects)
    lost = any(_has_lost(made, comparison) for comparison in comparisons)
    if exit_code(made) == 3 or not (judged or lost):
        return 3
    if lost or any(c.effects and failing(replace(c, lost=()), fail_on) for c in comparisons):
        return 1
    return 3 if any(comparison.lost for comparison in comparisons) else 0
