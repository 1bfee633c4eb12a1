"""The model runtimes of a Python, by the packages on its path; none is imported."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable

from benchwright.agent.machine.packages import list_packages, normalized
from benchwright.core.checkup import Interpreter

# Frameworks beyond the runtimes of the registry → the packages that provide them, in order of preference.
FRAMEWORKS = {
    "torch": ("torch",),
    "tensorrt": ("tensorrt", "tensorrt-cu13", "tensorrt-cu12"),
    "jax": ("jax",),
    "tensorflow": ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly"),
    "litert": ("ai-edge-litert", "tflite-runtime"),
    "torch-xla": ("torch-xla",),
    "mxnet": ("mxnet", "mxnet-cu112"),
    "paddle": ("paddlepaddle", "paddlepaddle-gpu"),
    "llama.cpp": ("llama-cpp-python",),
    "vllm": ("vllm",),
}
_QUESTION = "import json,sys; print(json.dumps([sys.executable, list(sys.version_info[:3]), sys.path]))"
_PATIENCE_S = 10.0


def find_runtimes(path_entries: Iterable[str]) -> dict[str, str]:
    """Runtime → version, for the folders of a Python's path; those of plug-ins on that path included."""
    entries = list(path_entries)
    packages = list_packages(entries)
    found: dict[str, str] = {}
    seen: set[str] = set()  # packages: several runtimes may use the same
    for runtime, names in _providers().items():
        version = next((packages[name] for name in names if name in packages), None)
        if version is not None and not seen & set(names):
            found[runtime] = version
        seen |= set(names)
    return {**found, **_added(entries)}


def _providers() -> dict[str, list[str]]:
    """Runtime or framework → its packages, as they are compared."""
    from benchmodels.runtimes.registry import BUILT_IN, runtime_named

    ours = {name: runtime_named(name).packages for name in BUILT_IN}
    return {name: [normalized(package) for package in names] for name, names in {**FRAMEWORKS, **ours}.items()}


def _added(path_entries: list[str]) -> dict[str, str]:
    """Runtimes of plug-ins on that path → version of the plug-in. Not imported: it may be another Python."""
    from importlib import metadata

    from benchmodels.runtimes.registry import BUILT_IN, GROUP

    found: dict[str, str] = {}
    for distribution in metadata.distributions(path=path_entries):
        for point in distribution.entry_points.select(group=GROUP):
            if point.name not in BUILT_IN:
                found.setdefault(point.name, distribution.version)
    return dict(sorted(found.items()))


def own_interpreter() -> Interpreter:
    """The Python that benchwright runs on."""
    return Interpreter(
        role="benchwright's own",
        executable=sys.executable,
        version="{}.{}.{}".format(*sys.version_info[:3]),
        runtimes=find_runtimes(sys.path),
    )


def ask_interpreter(program: str, role: str) -> Interpreter:
    """Starts a Python to ask for its path: `program` may be a shim, so its own location says nothing."""
    try:
        done = subprocess.run(
            [program, "-c", _QUESTION], capture_output=True, text=True, timeout=_PATIENCE_S, stdin=subprocess.DEVNULL
        )
        executable, version, path = json.loads(done.stdout)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Interpreter(role=role, executable=program, trouble=f"it does not start: {error}")
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return Interpreter(role=role, executable=program, trouble=f"it does not start: {last[0]}")
    # The first entry is the current folder, which a script elsewhere would not have.
    return Interpreter(
        role=role, executable=executable, version=".".join(map(str, version)), runtimes=find_runtimes(path[1:])
    )
