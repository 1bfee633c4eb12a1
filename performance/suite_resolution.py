"""What it costs to resolve and to plan a suite of 1,000 entries that inherit, beside what PyYAML and OmegaConf take.

    python performance/suite_resolution.py [--entries 1000] [--quick]

Each entry inherits through two others, from a file that another one includes. The peers do less: `yaml.safe_load` only
reads the text, with its C parser too; OmegaConf merges each entry with what it inherits, from values read already, and
checks nothing. Bar: resolve and plan together under 0.5 s CPU; exit 1 if it is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from benchwright.core.machine import Machine
from benchwright.core.system import SuitePaths, System
from benchwright.kinds.registry import kind_of
from benchwright.kinds.suite.kind import SuiteKind
from benchwright.kinds.suite.read.suite import read_suite
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan

BAR_S = 0.5
GROUPS = 20


def suite_text(count: int) -> tuple[str, str]:
    """What is inherited, and the entries."""
    base = ["_defaults:\n  max_duration: 600\n  voir:\n    options:\n      stop: 60\n      interval: 1s\n"]
    for group in range(GROUPS):
        base.append(
            f"_group{group}:\n  inherits: _defaults\n  definition: ../benchmarks/group{group}\n  group: group{group}\n"
            f"  install_group: torch\n  tags: [vision, t{group}]\n  plan:\n    method: per_gpu\n  argv:\n"
            "    --precision: 'tf32-fp16'\n    --lr: 0.01\n    --no-stdout: true\n    --epochs: 50\n"
            '    --num-workers: "auto({n_worker}, 8)"\n    --data: "{milabench_data}/FakeImageNet"\n'
        )
    entries = ["include: base.yaml\n"]
    for number in range(count):
        entries.append(
            f"bench{number}:\n  inherits: _group{number % GROUPS}\n  tags:\n    - monogpu\n    - x{number}\n"
            f'  weight: 1.0\n  argv:\n    --model: resnet{number}\n    --batch-size: "auto_batch({number + 1})"\n'
            "    --loader: pytorch\n"
        )
    return "".join(base), "".join(entries)


def cpu_s(work: Callable[[], object], rounds: int) -> list[float]:
    seen = []
    for _ in range(rounds):
        before = time.process_time()
        work()
        seen.append(time.process_time() - before)
    return sorted(seen)


def plan(path: str) -> None:
    paths = SuitePaths(
        base="/b", data="/b/data", extra="/b/extra", cache="/b/cache", venv="/b/venv", runs="/b/runs",
        system=System(arch="cuda", gpu_count=1),
    )  # fmt: skip
    machine = Machine(
        hostname="host", system="Linux", kernel="6", architecture="x86_64", cpu="cpu", cores=16, cores_total=16,
        memory_bytes=1 << 36, python="3.11",
    )  # fmt: skip
    make_plan(
        SuiteKind().read(path, Options()),
        machine,
        Options(suite_paths=paths),
        kind_of,
        folder="/b/runs/x",
        probe_path=None,
        usable_cores=range(16),
    )


def peers(texts: tuple[str, str]) -> dict[str, Callable[[], object]]:
    """What others do of the same, less."""
    found: dict[str, Callable[[], object]] = {
        "yaml.safe_load": lambda: [yaml.safe_load(text) for text in texts],
        "yaml.load, C parser": lambda: [yaml.load(text, yaml.CSafeLoader) for text in texts],
    }
    try:
        from omegaconf import OmegaConf
    except ImportError:
        print("omegaconf is not installed: left out", file=sys.stderr)
        return found
    values = {name: entry for text in texts for name, entry in yaml.safe_load(text).items() if name != "include"}

    def merge_all() -> None:
        made = {}
        for name, entry in values.items():
            parent = made.get(entry.get("inherits"), {})
            made[name] = OmegaConf.merge(parent, entry)

    return found | {"OmegaConf.merge": merge_all}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = suite_text(options.entries)
        path = str(Path(folder, "suite.yaml"))
        Path(folder, "base.yaml").write_text(texts[0])
        Path(path).write_text(texts[1])
        cases: dict[str, Callable[[], object]] = {
            "resolve": lambda: read_suite(path),
            "resolve + plan": lambda: plan(path),
            **peers(texts),
        }
        rounds = 3 if options.quick else 9
        seen = {name: cpu_s(work, rounds) for name, work in cases.items()}
    print(f"CPU seconds for {options.entries} entries: median of {rounds}, least, most")
    for name, values in seen.items():
        print(f"  {name:<20} {values[len(values) // 2]:7.3f} {values[0]:7.3f} {values[-1]:7.3f}")
    if seen["resolve + plan"][rounds // 2] > BAR_S * options.entries / 1000:
        sys.exit(f"missed: resolve + plan takes more than {BAR_S} s CPU")


if __name__ == "__main__":
    main()
