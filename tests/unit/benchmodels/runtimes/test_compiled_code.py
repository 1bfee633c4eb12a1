"""torch's compiler: libraries in its cache that were cut short, and what it imports."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from benchmodels.runtimes.base import RuntimeOptions
from benchmodels.runtimes.parts.compiled_code import VARIABLE, copies_cxx_library, is_whole, remove_damaged
from benchmodels.runtimes.torch_compile import lacking_compiler

# As torch 2.11's inductor does, which asks whether there is a GPU when it is imported; and one that keeps the function.
ASKING = """
import os, sys, types, torch
asked = []
torch.cuda.is_available = lambda: asked.append("driver") or False
os.path.exists = lambda path, exists=os.path.exists: path == "/dev/nvidiactl" or exists(path)

class Asking:
    def find_spec(self, name, path=None, target=None):
        if name == "torch._inductor.hooks":
            print("said at import:", torch.cuda.is_available())
            self.kept = torch.cuda.is_available

finder = Asking()
sys.meta_path.insert(0, finder)
import benchmodels.runtimes.parts.compile_imports
print("asked at import:", asked)
print("said later:", torch.cuda.is_available(), finder.kept(), asked)
"""
HEADER = b"\x7fELF\x02\x01" + bytes(34) + struct.pack("<Q", 128) + bytes(10) + struct.pack("<HH", 64, 2) + bytes(2)


def library(path: Path, size: int, age_s: float = 60.0) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes((HEADER + bytes(1000))[:size])
    written = path.stat().st_mtime - age_s
    os.utime(path, (written, written))
    return path


def test_a_library_is_whole_if_it_ends_where_its_header_says(tmp_path: Path) -> None:
    assert len(HEADER) == 64
    assert is_whole(library(tmp_path / "a.so", 128 + 2 * 64))
    assert not is_whole(library(tmp_path / "b.so", 128 + 2 * 64 - 1))
    assert not is_whole(library(tmp_path / "c.so", 0))


def test_only_damaged_ones_that_nobody_is_making_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library(tmp_path / "a" / "good.so", 300)
    library(tmp_path / "b" / "cut.so", 100)
    library(tmp_path / "c" / "new.so", 100, age_s=0)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert remove_damaged() == ["cut.so"]
    assert sorted(path.name for path in tmp_path.rglob("*.so")) == ["good.so", "new.so"]
    monkeypatch.delenv(VARIABLE)
    assert remove_damaged() == []


@pytest.mark.long
def test_the_driver_is_asked_nothing_while_the_compiler_is_imported():
    done = subprocess.run([sys.executable, "-c", ASKING], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "said at import: True",
        "asked at import: []",
        "said later: False False ['driver', 'driver']",
    ]


WORKERS = """
import os, sys
from torch._inductor.async_compile import AsyncCompile
from benchmodels.process_exit import end_compile_workers, _children
AsyncCompile.process_pool().submit(os.getpid).result()
before = _children()
end_compile_workers()
print(len(before), _children())
"""


@pytest.mark.long
def test_the_workers_of_the_compiler_do_not_outlive_the_process_that_measured():
    """They start when something is compiled for a GPU."""
    environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", WORKERS], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "1 []\n"


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("g++") is None, reason="needs g++ on Linux")
def test_a_compiler_that_links_the_cxx_library_statically_is_known(tmp_path: Path) -> None:
    static = tmp_path / "g++"
    static.write_text(f'#!/bin/sh\nexec {shutil.which("g++")} -static-libstdc++ "$@"\n')
    static.chmod(0o755)
    assert copies_cxx_library(str(static))
    assert not copies_cxx_library("g++")


@pytest.mark.parametrize("compiler", ["", "/no/such/compiler", "false"])
def test_what_is_no_compiler_is_left_to_torch_to_complain_about(compiler: str) -> None:
    assert not copies_cxx_library(compiler)


@pytest.mark.parametrize("named", ["/no/such/g++", ""])
def test_a_compiler_that_is_not_there_is_named(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch then looks for no other."""
    monkeypatch.setenv("CXX", named)
    assert (
        lacking_compiler(RuntimeOptions())
        == f"torch.compile needs a C++ compiler, and there is no {named!r}, which CXX names"
    )


def test_without_cxx_torch_takes_the_usual_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert lacking_compiler(RuntimeOptions()) == "torch.compile needs a C++ compiler: install g++, or set CXX"
    (tmp_path / "g++").touch(0o755)
    (tmp_path / "clang++").touch(0o755)
    assert lacking_compiler(RuntimeOptions()) is None
