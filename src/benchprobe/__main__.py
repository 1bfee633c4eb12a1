"""`python -m benchprobe [options] main.py ARGS` or `… -m module ARGS`: runs it and shows what its loops do."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any, Dict, List, Optional

from benchprobe.version import __version__
from benchprobe.view.launch import ScriptRun, run


def duration_s(text: str) -> Optional[float]:
    """Seconds from `500ms`, `30s`, `5m`, `1h`; None for anything else."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|min|h)", text)
    return None if match is None else float(match[1]) * {"ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600}[match[2]]


def stop_settings(text: str) -> Dict[str, Any]:
    word = text.strip()
    if re.fullmatch(r"0*[1-9]\d*\s*(steps?)?", word):
        return {"steps": int(re.split(r"\D", word)[0])}
    percent = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)\s*%", word)
    if percent and 0 < float(percent[1]) < 100:
        return {"precision": float(percent[1]) / 100}
    if seconds := duration_s(word):
        return {"seconds": seconds}
    raise argparse.ArgumentTypeError(f"'{text}' is not a stop rule; write 100 (steps), 30s or 1%%")


def warmup_settings(text: str) -> Dict[str, Any]:
    word = text.strip()
    if word == "auto":
        return {}
    if word.isdigit():
        return {"steps": int(word)}
    if (seconds := duration_s(word)) is not None:
        return {"seconds": seconds}
    raise argparse.ArgumentTypeError(f"'{text}' is not a warm-up; write auto, 20 (steps) or 5s")


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m benchprobe",
        description="Run a script with a live view of its loops (progress, rate, loss, memory) and a summary.",
        usage="python -m benchprobe [options] (main.py | -m module) [arguments]",
    )
    made.add_argument("--stop", type=stop_settings, metavar="RULE", help="100 (measured steps), 30s or 1%%")
    made.add_argument("--warmup", type=warmup_settings, metavar="RULE", default={}, help="auto, 20 (steps) or 5s")
    made.add_argument("--loop", metavar="NAME", help="the loop that counts (default: train, else the first)")
    made.add_argument("--stream", metavar="FILE", help="keep the event stream in this file")
    made.add_argument("--json", action="store_true", help="the summary as one line of JSON, on stderr")
    made.add_argument("--version", action="version", version=f"benchprobe {__version__}")
    made.add_argument("-m", dest="module", nargs=argparse.REMAINDER, help="run a module, as python -m does")
    made.add_argument("script", nargs=argparse.REMAINDER, help="the script and its arguments")
    return made


def main(argv: Optional[List[str]] = None) -> int:
    options = parser().parse_args(argv)
    command = ["-m", *options.module] if options.module else options.script
    if not command or (options.module is not None and not options.module):
        parser().error("name a script to run, or -m and a module")
    config = {"warmup": options.warmup, **{k: v for k in ("stop", "loop") if (v := getattr(options, k))}}
    return run(ScriptRun(command, config, options.stream, options.json))


if __name__ == "__main__":
    sys.exit(main())
