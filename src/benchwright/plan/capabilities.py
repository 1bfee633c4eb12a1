"""Whether the system has what a benchmark asks for."""

from __future__ import annotations

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import UnfilledWord
from benchwright.plan.words.expressions import ExpressionError, evaluate
from benchwright.plan.words.machine_facts import MachineFacts
from benchwright.plan.words.placeholders import Context, PlaceholderError, fill


def unmet_condition(benchmark: Benchmark, facts: MachineFacts) -> str | None:
    """The first condition that does not hold here, as a sentence; None if all hold. UnfilledWord if one cannot be judged."""
    machines = benchmark.placement.machines
    if machines > facts.machine_count:
        has = "1 machine" if facts.machine_count == 1 else f"{facts.machine_count} machines"
        return f"needs {machines} machines, the system has {has}; list them under `nodes` of the system file"
    for condition in benchmark.requires:
        if not _holds(condition, benchmark, facts):
            return f"needs {condition}, which does not hold here"
    return None


def _holds(condition: str, benchmark: Benchmark, facts: MachineFacts) -> bool:
    try:
        return bool(evaluate(fill(condition, Context(facts.names)), facts.names))
    except (ExpressionError, PlaceholderError) as error:
        raise UnfilledWord(
            f"{benchmark.name} requires '{condition}': {error.what}",
            entry=benchmark.name,
            word=condition,
            where=benchmark.source,
            remedy=error.remedy or "write a condition, such as gpu['count'] > 1",
        ) from None
