"""Small specifications for tests."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import benchwright
from benchwright.core.benchmark import Benchmark
from benchwright.kinds.spec import spec_test
from benchwright.kinds.spec.options import SpecOptions
from benchwright.kinds.spec.read.specification import read_specification
from benchwright.kinds.spec.spec_test import SpecTest

# Of accuracy specifications.
SCRIPTS = Path(benchwright.__file__).parent / "compat" / "faipep" / "libraries" / "python"
MODEL: dict[str, Any] = {"name": "net", "format": "caffe2"}


def written(path: Path, model: dict[str, Any] | None = None, *tests: dict[str, Any]) -> str:
    """A specification at `path`, with a test that runs {program} if none is given."""
    path.parent.mkdir(parents=True, exist_ok=True)
    said = tests or ({"identifier": "{ID}", "commands": ["{program} --iter {iter}"], "iter": 5, "warmup": 1},)
    path.write_text(json.dumps({"model": {**MODEL, **(model or {})}, "tests": list(said)}, indent=1))
    return str(path)


def read(path: Path, *tests: dict[str, Any], options: SpecOptions | None = None, **model: Any) -> list[Benchmark]:
    """The benchmarks of such a file in the folder `path`."""
    return read_specification(written(path / "spec.json", model, *tests), options or SpecOptions())


def spec_of(benchmark: Benchmark) -> SpecTest:
    """The test that a benchmark is."""
    found = spec_test.spec_of(benchmark)
    assert found is not None
    return found


def file_entry(path: Path, content: str = "x") -> dict[str, str]:
    """A file beside a specification, as the specification names it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    md5 = hashlib.md5(content.encode()).hexdigest()
    return {"filename": path.name, "location": str(path), "md5": md5}


def run_script(script: str, *args: object) -> subprocess.CompletedProcess[str]:
    """One of them, with nothing installed."""
    command = [sys.executable, "-I", "-S", str(SCRIPTS / script), *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def records(said: subprocess.CompletedProcess[str], keyword: str = "Caffe2Observer") -> dict[str, Any]:
    """What it printed for an observer, by metric."""
    assert said.returncode == 0, said.stderr
    found = [json.loads(line.removeprefix(f"{keyword} ")) for line in said.stdout.splitlines() if keyword in line]
    return {record["metric"]: record for record in found}
