"""torch in processes that are forked after it was imported."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pytest
from builders import events
from builders import job as job_in

from benchwright.executors.base import Listener
from benchwright.executors.local import LocalExecutor
from benchwright.kinds.models.kind import OF_COMPILERS, thread_settings

pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked like this on Linux only")

SCRIPT = """import torch, json, os
a = torch.randn(512, 512)
for _ in range(3):
    a @ a
told = {"threads": torch.get_num_threads(), "running": len(os.listdir("/proc/self/task")), "first": float(a[0, 0])}
told["policy"] = os.environ["OMP_WAIT_POLICY"]
print(json.dumps(told))
"""


@pytest.mark.parametrize("threads", [pytest.param(1, marks=pytest.mark.long), 2])
def test_threads_and_random_numbers_are_those_of_a_process_started_afresh(tmp_path: Path, threads: int) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    words = (sys.executable, "-m", "benchmodels", str(tmp_path / "script.py"))
    found = {}
    with LocalExecutor() as executor:
        for warm in (("torch",), ()):
            job = job_in(
                *words,
                folder=tmp_path,
                id=f"{threads}-{len(warm)}",
                env={**thread_settings(threads)},
                warm=warm,
                probe={"models": {"mode": "discover", "seed": 3}},
            )
            executor.run([job], Listener())
            assert events(job, "start")[0].get("warm", False) == bool(warm)
            found[bool(warm)] = json.loads(gzip.decompress(Path(job.log + ".gz").read_bytes()))
    assert found[True]["threads"] == threads
    assert found[True]["first"] == found[False]["first"]
    assert found[True]["policy"] == "PASSIVE"
    # The idle threads of OpenBLAS, which numpy starts when it is imported, need not be there.
    assert 0 <= found[False]["running"] - found[True]["running"] <= threads - 1


COMPILING = """import torch, json, os, sys, threading
before = set(sys.modules)
import torch._inductor.compile_fx, torch._inductor.runtime.triton_heuristics
told = {"imported": len(set(sys.modules) - before), "pool": os.environ.get("TORCH_WARM_POOL")}
told["cuda"] = torch.cuda.is_initialized() or "torch.utils.cpp_extension" in before
print(json.dumps({**told, "threads": threading.active_count()}))
"""


@pytest.mark.long
def test_torchs_compiler_is_imported_before_and_has_started_nothing(tmp_path: Path) -> None:
    """`cuda`: torch.utils.cpp_extension asks the driver for devices when it is imported."""
    (tmp_path / "script.py").write_text(COMPILING)
    words = (sys.executable, "-m", "benchmodels", str(tmp_path / "script.py"))
    job = job_in(
        *words,
        folder=tmp_path,
        id="a",
        warm=("torch", *OF_COMPILERS),
        probe={"models": {"mode": "discover", "seed": 3}},
    )
    with LocalExecutor() as executor:
        executor.run([job], Listener())
    assert events(job, "start")[0].get("warm")
    found = json.loads(gzip.decompress(Path(job.log + ".gz").read_bytes()))
    assert found == {"imported": 0, "pool": None, "cuda": False, "threads": 1}
