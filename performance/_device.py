"""What scripts that need a GPU have in common: whether there is one, trying a script without it, and what a launch spent."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

DRY = "try this script on the processor; what it prints means nothing"


def add_device_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry", action="store_true", help=DRY)


def device_for(options: argparse.Namespace) -> str | None:
    """`cuda`, or `cpu` for a trial. None: there is no GPU, which was said."""
    if options.dry:
        print("a trial on the processor: these numbers mean nothing", flush=True)
        return "cpu"
    if has_gpu():
        return "cuda"
    print("no GPU here: nothing measured")
    return None


def has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


class Phases(NamedTuple):
    """What one launch of a model spent, in seconds, and when it was on the device (seconds of its node's clock)."""

    start: float  # until its program ran, a warm process included
    build: float  # the model, on the processor
    wait: float  # for its turn, and whatever is not known
    load: float
    compile: float
    first: float  # the first call
    loop: float  # warm-up and measured
    check: float  # everything after the loop
    began: float
    ended: float
    device_from: float
    device_until: float

    @property
    def on_device(self) -> float:
        return self.device_until - self.device_from


COLUMNS = Phases._fields[: Phases._fields.index("began")]


def phases_of(stream: Path) -> Phases | None:
    """None: it did not come to its loop."""
    times: dict[str, float] = {}
    figures: dict[str, float] = {}
    for line in stream.read_text().splitlines():
        event: dict[str, Any] = json.loads(line)
        kind = event["event"]
        if kind == "measured" and event["metric"].startswith("time."):
            figures[event["metric"]] = float(event["values"][0])
            times.setdefault(event["metric"], event["t"] / 1e9)
        elif kind in ("stream", "start", "model", "loop"):
            times.setdefault(kind, event["t"] / 1e9)
        elif kind in ("loop_end", "end"):
            times[kind] = event["t"] / 1e9
    if not {"model", "loop", "loop_end", "end", "time.first_run"} <= times.keys():
        return None
    load, compile_s, first = (figures.get(name, 0.0) for name in ("time.load", "time.build", "time.first_run"))
    device_from = times["time.first_run"] - load - compile_s - first
    return Phases(
        start=times["start"] - times["stream"],
        build=times["model"] - times["start"],
        wait=device_from - times["model"],
        load=load,
        compile=compile_s,
        first=first,
        loop=times["loop_end"] - times["loop"],
        check=times["end"] - times["loop_end"],
        began=times["stream"],
        ended=times["end"],
        device_from=device_from,
        device_until=times["loop_end"],
    )


def tell_phases(found: Sequence[Phases], name: str) -> None:
    """Medians of each phase."""
    if found:
        words = " ".join(f"{column} {median(getattr(one, column) for one in found):.2f}" for column in COLUMNS)
        print(f"  {name:<11} median seconds of {len(found)} launches: {words}", flush=True)
