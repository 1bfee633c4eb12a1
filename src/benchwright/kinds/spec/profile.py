"""The `profiler` of a test: what we have is the operators of models on our runtimes."""

from __future__ import annotations

from benchwright.kinds.spec.spec_test import SpecTest

_OF_DEVICES = {
    "simpleperf": "run it on the device by hand: adb shell simpleperf",
    "perfetto": "run it on the device by hand: adb shell perfetto",
    "xctrace": "iOS devices are not measured here",
}
_OPERATORS = "without --program, a model that our runtimes load has its operators timed"


def asks_for_profile(test: SpecTest) -> bool:
    """Whether its profiler is enabled."""
    return str(test.profiler.get("enabled")).lower() in ("true", "1")


def declined(test: SpecTest) -> str | None:
    """Why the profiler of a test that runs a program is not run; None if it asks for none."""
    if not asks_for_profile(test):
        return None
    name = str(test.profiler.get("profiler") or "").strip()
    named = f"the profiler '{name}'" if name else "a profiler"
    return (
        f"{test.identifier} asks for {named}, which is not run: it would slow down what is measured; "
        f"{_OF_DEVICES.get(name.lower(), _OPERATORS)}"
    )
