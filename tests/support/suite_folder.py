"""A suite in a folder of its own, installed from packages made by hand."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from command_line import CommandLine
from local_wheels import make_packages, offline

MAIN = """\
import time
import benchprobe
for step in benchprobe.iterate("train", range(100_000), batch_size=4):
    time.sleep(0.002)
"""
PREPARE = """\
import os, pathlib, sys
data = pathlib.Path(os.environ["BENCHWRIGHT_DATA_DIR"])
(data / "set").mkdir(parents=True, exist_ok=True)
with open(data / "set" / "log", "a") as log:
    print(sys.prefix, *sys.argv[1:], file=log)
print("prepared", *sys.argv[1:])
"""


class SuiteFolder:
    """`add` benchmarks, then use the command line: `suite.path` is the suite's file."""

    def __init__(self, bw: CommandLine, folder: Path) -> None:
        self.bw = bw
        self.folder = folder
        self.path = str(folder / "suite.yaml")
        self.packages = folder / "packages"
        self.entries: dict[str, Any] = {
            "_defaults": {"max_duration": 60, "install_variant": "unpinned", "plan": {"method": "per_gpu"}}
        }
        make_packages(self.packages)
        for name in [name for name in bw.env if name.startswith(("PIP_", "UV_"))]:
            del bw.env[name]
        bw.env |= offline(self.packages, folder / "uv-cache")

    def add(self, name: str, files: Mapping[str, str] | None = None, **entry: Any) -> Path:
        """A benchmark and its folder; `folder` names one that several share."""
        place = self.folder / str(entry.pop("folder", name))
        place.mkdir(exist_ok=True)
        for file, text in {"main.py": MAIN, **(files or {})}.items():
            (place / file).write_text(text)
        self.entries[name] = {"inherits": "_defaults", "definition": f"./{place.name}", **entry}
        self.write()
        return place

    def write(self) -> None:
        Path(self.path).write_text(yaml.safe_dump(self.entries, sort_keys=False))

    @property
    def venv(self) -> Path:
        return self.bw.base / "venv"

    @property
    def data(self) -> Path:
        return self.bw.base / "data"

    def version(self, package: str, group: str) -> str:
        """As the group's own interpreter sees it."""
        code = f"import {package}; print({package}.__version__)"
        python = self.venv / group / "bin" / "python"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def environments(self) -> list[str]:
        """Folders that hold an environment, or the rest of one."""
        store = self.venv / ".environments"
        return sorted(p.name for p in store.iterdir() if p.is_dir()) if store.exists() else []

    def prepared(self) -> list[str]:
        """Lines that PREPARE wrote, one for each time it ran."""
        log = self.data / "set" / "log"
        return log.read_text().splitlines() if log.exists() else []
