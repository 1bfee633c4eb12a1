"""Points under the roofs that were measured: where they lie, which roof is theirs, and how near they are."""

from __future__ import annotations

import pytest

from benchwright.analysis.roofline import rooflines
from benchwright.core.efficiency import BYTES, CPU, DEVICE, FLOPS, MEMORY, Efficiency, Peak, Work
from benchwright.core.note import Note

BANDWIDTH, PEAK = 4e12, 600e12  # so the ridge lies at 150 FLOP a byte


def work(quantity: str, achieved: float, peak: float | None, kind: str = "", place: str = DEVICE, **more) -> Efficiency:
    known = (
        None if peak is None else Peak(value=peak, benchmark=f"peak-{kind or 'memory'}", doubt=more.pop("doubt", None))
    )
    return Efficiency(work=Work(quantity, kind, place), per_item=1.0, achieved=achieved, peak=known, **more)


def test_few_operations_a_byte_are_limited_by_memory_and_many_by_arithmetic() -> None:
    (found,) = rooflines(
        {
            "decode": (work(FLOPS, 10e12, PEAK, "bf16"), work(BYTES, 2e12, BANDWIDTH)),
            "prefill": (work(FLOPS, 450e12, PEAK, "bf16"), work(BYTES, 1e12, BANDWIDTH)),
        }
    )
    decode, prefill = found.points
    assert (decode.intensity, decode.limit, decode.roof, decode.share) == (5.0, MEMORY, 20e12, 0.5)
    assert (prefill.intensity, prefill.limit, prefill.roof, prefill.share) == (450.0, "bf16", PEAK, 0.75)
    assert (found.memory.value, found.arithmetic["bf16"].value) == (BANDWIDTH, PEAK)


def test_of_two_precisions_the_roof_is_what_both_take_one_after_the_other() -> None:
    (found,) = rooflines(
        {
            "mixed": (
                work(FLOPS, 30e12, 300e12, "tf32"),
                work(FLOPS, 5e12, 50e12, "fp32"),
                work(BYTES, 0.05e12, BANDWIDTH),
            )
        }
    )
    (point,) = found.points
    assert point.roof == pytest.approx(35e12 / 0.2)
    assert point.share == pytest.approx(0.2)
    assert point.limit == "tf32"


@pytest.mark.parametrize(
    "lacking",
    [
        (work(FLOPS, 10e12, PEAK, "bf16"),),
        (work(FLOPS, 10e12, None, "bf16"), work(BYTES, 2e12, BANDWIDTH)),
        (work(FLOPS, 10e12, PEAK, "bf16"), work(BYTES, 2e12, None)),
        (work(FLOPS, 10e12, PEAK, "bf16", doubt=Note(text="was disturbed")), work(BYTES, 2e12, BANDWIDTH)),
        (work(FLOPS, 10e12, PEAK, "bf16"), work(BYTES, 2e12, BANDWIDTH, "to_device")),
        (work(FLOPS, 10e12, PEAK, "bf16"), work(BYTES, 2e12, BANDWIDTH, place=CPU)),
    ],
)
def test_without_both_kinds_of_work_and_trusted_peaks_of_both_there_is_no_point(lacking) -> None:
    assert rooflines({"a": lacking}) == []


def test_processors_and_devices_have_roofs_of_their_own() -> None:
    found = rooflines(
        {
            "gpu": (work(FLOPS, 10e12, PEAK, "bf16"), work(BYTES, 2e12, BANDWIDTH)),
            "cpu": (work(FLOPS, 1e11, 2e11, "fp32", CPU), work(BYTES, 1e10, 5e10, place=CPU)),
        }
    )
    assert [(each.place, len(each.points)) for each in found] == [(DEVICE, 1), (CPU, 1)]
