"""How long does the report of a thousand models take, how large is its page, and how soon is it usable in a browser?

    python performance/corpus_report.py [--models 1000] [--keep DIR]

Made-up results of four runtimes are kept as any imported run is, and reported from there. The browser is chromium, if there is one.

Bars: 60 s for all formats; a page of 3 MB, usable 2 s after it is opened.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
for folder in ("src", "tests/support"):
    sys.path.insert(0, str(ROOT / folder))

from corpus_runs import corpus_run, keep  # noqa: E402

MOST_S, MOST_BYTES, MOST_READY_MS = 60.0, 3_000_000, 2000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--keep", help="keep cache and report there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as aside:
        place = Path(asked.keep or aside)
        keep(corpus_run(asked.models), place / "cache")
        began = time.perf_counter()
        words = [sys.executable, "-m", "benchwright", "report", "--cache-dir", str(place / "cache")]
        done = subprocess.run(
            [*words, "--report-dir", str(place / "report")], capture_output=True, text=True, check=True
        )
        took = time.perf_counter() - began
        sizes = {path.name: path.stat().st_size for path in sorted((place / "report").iterdir())}
        page = next((place / "report").glob("*.html"))
        ready = _ready_ms(page)
    print(f"{asked.models} models on 4 runtimes: {took:.1f} s for all formats (bar {MOST_S:g})")
    print("".join(f"  {name}: {size / 1e6:.2f} MB\n" for name, size in sizes.items()), end="")
    print(f"  {len(done.stdout.splitlines())} lines on the screen")
    print("no chromium here" if ready is None else f"usable after {ready} ms in chromium (bar {MOST_READY_MS})")
    return int(took > MOST_S or sizes[page.name] > MOST_BYTES or (ready or 0) > MOST_READY_MS)


def _ready_ms(page: Path) -> int | None:
    """When its script had drawn everything, in milliseconds after the page was opened."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        return None
    words = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=5000",
        "--dump-dom",
        page.as_uri(),
    ]
    shown = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True).stdout
    found = re.search(r'data-ready="(\d+)"', shown)
    return int(found[1]) if found else MOST_READY_MS + 1


if __name__ == "__main__":
    sys.exit(main())
