"""Reports of a test's program: records of its observer, its outputs against golden ones, its power."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from benchwright.agent.extractors.base import ESCAPE_SEQUENCE
from benchwright.core.measurement import Measurement
from benchwright.core.note import Note
from benchwright.core.status import Reason, Status
from benchwright.kinds.spec.observers.converters import OutputReader, reader_of
from benchwright.kinds.spec.observers.identified import LATENCY
from benchwright.kinds.spec.observers.records import Observed, PrintedLine
from benchwright.kinds.spec.observers.series import OF_OP, ObservedSeries, series_of
from benchwright.kinds.spec.results.battery import battery_use
from benchwright.kinds.spec.results.goldens import COMPARED, WRITTEN, GoldenResults
from benchwright.kinds.spec.results.power import NO_COUNTER, EnergyUse
from benchwright.kinds.spec.spec_test import ERROR, POWER, SpecPower, SpecTest
from benchwright.record.base import Gatherer
from benchwright.record.stream_file import Event
from benchwright.record.verdict import LaunchVerdict

if TYPE_CHECKING:
    from benchwright.kinds.spec.results.battery import BatteryUse

_SHOWN = 3


def reader_for(test: SpecTest) -> OutputReader | None:
    """The reader of the output of the test's program; None: only patterns read it."""
    converter = test.converter
    name, args = (converter.name, converter.args) if converter is not None else (None, {})
    return reader_of(name, args, test.observer, test.framework or test.format)


class SpecGatherer(Gatherer):
    """Gathers what one launch of a test reported."""

    def __init__(self, test: SpecTest) -> None:
        self._test = test
        self._reader = reader_for(test)
        self._lines: list[PrintedLine] = []
        self._written: list[Event] = []  # output files with results
        self._goldens = GoldenResults(test.goldens)
        self._energy = _energy_use(test) if test.metric == POWER else None

    def add(self, event: Event) -> None:
        if event["event"] == "printed":
            for number, text in event["lines"]:
                plain = ESCAPE_SEQUENCE.sub("", text) if "\x1b" in text else text
                self._lines.append(PrintedLine(number, plain, bool(event.get("cut"))))
        elif event["event"] == COMPARED:
            self._goldens.add(event)
        elif event["event"] == WRITTEN:
            self._written.append(event)

    def sampled(self, event: Event) -> None:
        if self._energy is not None:
            self._energy.add(event)

    @cached_property
    def _observed(self) -> Observed:
        found = Observed() if self._reader is None else self._reader.read(self._lines)
        converters = {each.key: each.converter for each in self._test.output_files}
        for event in self._written:
            converter = converters.get(str(event["output"]))
            reader = None if converter is None else reader_of(converter.name, converter.args, None, None)
            if reader is None or "lines" not in event:
                found.reject(0, str(event.get("wrong") or event["output"]), "is not a results file")
                continue
            read = reader.read(
                [PrintedLine(n, line, False) for n, line in enumerate(event["lines"], 1) if reader.wanted in line]
            )
            found = Observed([*found.records, *read.records], [*found.unread, *read.unread])
        return found

    @cached_property
    def _battery(self) -> BatteryUse | None:
        if self._energy is None:
            return None

        return battery_use(self._lines, (self._test.power or SpecPower()).voltage)

    @cached_property
    def _series(self) -> list[ObservedSeries]:
        return series_of(self._observed.records, self._test.model)

    def measurements(self) -> list[Measurement]:
        found = [] if self._energy is None else self._energy.measurements(self._battery)
        found += [series.measurement for series in self._series if _has_samples(series.measurement)]
        return found + self._goldens.measurements()

    def judge(self, found: list[Measurement]) -> LaunchVerdict | None:
        return self._goldens.judge() or self._nothing_measured(found) or _impossible(found)

    def notes(self) -> list[Note]:
        found = [] if self._energy is None or self._battery is not None else self._energy.notes()
        unread = self._observed.unread
        if unread:
            shown = "; ".join(f"line {each.line}: {each.text} ({each.why})" for each in unread[:_SHOWN])
            count = f"{len(unread)} record{'' if len(unread) == 1 else 's'} could not be read and did not count"
            found.append(Note(text=count, evidence=shown))
        net = [s.measurement for s in self._series if not s.measurement.metric.startswith(OF_OP)]
        if self._series and not net:
            text = "the program printed operators only, so the latency of the whole net is not known"
            found.append(Note(text=text, remedy="have its observer print the net, too"))
        samples = next((len(m.samples) for m in net if m.metric == LATENCY), 0)
        asked = self._test.iterations or 0
        if 1 < samples < asked:
            found.append(Note(text="fewer iterations were printed than asked for", evidence=f"{samples} of {asked}"))
        return found

    def facts(self) -> dict[str, object]:
        facts: dict[str, object] = {}
        if self._series:
            facts["records"] = [
                {"type": s.type, "metric": s.metric, "unit": s.unit, "as": s.measurement.metric, **s.about}
                for s in self._series
            ]
        return facts | self._goldens.facts()

    def _nothing_measured(self, found: list[Measurement]) -> LaunchVerdict | None:
        if self._energy is not None:
            has_power = any(m.source == "sampler" and m.metric == POWER and m.samples for m in found)
            why = (self._battery.trouble if self._battery is not None else None) or NO_COUNTER
            return None if has_power else LaunchVerdict(Status.SKIPPED, Reason.LACKS_CAPABILITY, why)
        if self._goldens and self._test.metric == ERROR:
            return None
        if any(m.source == "log" and m.samples for m in found):
            return None
        what = "a value of its patterns" if self._reader is None else self._reader.what
        unread = self._observed.unread
        why = f"; line {unread[0].line} {unread[0].why}: {unread[0].text}" if unread else ""
        return LaunchVerdict(Status.FAILED, Reason.NO_DATA, f"the program printed no result: {what} is missing{why}")


def _energy_use(test: SpecTest) -> EnergyUse:
    return EnergyUse(test.power or SpecPower())


def _has_samples(measurement: Measurement) -> bool:
    return bool(measurement.samples or measurement.warmup_samples)


def _impossible(found: list[Measurement]) -> LaunchVerdict | None:
    """A number that the program printed about the whole model must be finite, and a latency positive."""
    for m in found:
        if m.source != "log" or m.metric.startswith(OF_OP):
            continue
        for place, value in enumerate(m.samples, start=1):
            if not math.isfinite(value) or (m.metric == LATENCY and value <= 0):
                what = f"{m.metric} is {value:g} in record {place} of {len(m.samples)}, which is no result"
                return LaunchVerdict(Status.FAILED, Reason.INVALID, what)
    return None
