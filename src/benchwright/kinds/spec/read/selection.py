"""Some of a specification's tests."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.kinds.metric_option import check_distinct, metrics_of
from benchwright.kinds.spec.spec_test import spec_of
from benchwright.options.table import Options


def selected(benchmarks: Sequence[Benchmark], options: Options) -> list[Benchmark]:
    """The tests that `--task` names, by test or by model, with the metrics of `--metric`."""
    found = list(benchmarks)
    if options.tasks:
        known = {name for b in benchmarks for name in _names(b)}
        for name in options.tasks:
            if name not in known:
                remedy = did_you_mean(name, known) or f"it has {', '.join(sorted(known)[:8])}"
                raise InvalidInput(f"there is no test '{name}'", where="--task", remedy=remedy)
        found = [b for b in benchmarks if _names(b) & set(options.tasks)]
    if options.metrics or any(len(b.metrics) > 1 for b in found):
        found = [msgspec.structs.replace(b, metrics=b.metrics + metrics_of(options)) for b in found]
        for benchmark in found:
            check_distinct(benchmark.metrics)
    return found


def _names(benchmark: Benchmark) -> set[str]:
    """With a control, both sides have the test's own name, too: `net-1` means `net-1 control` and `net-1 treatment`."""
    test = spec_of(benchmark)
    if test is None:
        return {benchmark.name}
    return {benchmark.name, benchmark.name.removesuffix(f" {test.side}"), test.identifier, test.model}
