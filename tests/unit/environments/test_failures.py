"""What installers print when they fail, as they print it, and what is told of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.environments.failures import failure_of

UV = {
    "absent": (
        "error: No solution found when resolving dependencies\n  cause: Because nothere was not found in the provided "
        "package locations and you require nothere, we can conclude that your requirements are unsatisfiable.\n",
        "nothere",
        "nothere was not found in the provided package locations",
    ),
    "absent, as older versions draw it": (
        "  × No solution found when resolving dependencies:\n  ╰─▶ Because nothere was not found in the package registry and "
        "you require\n      nothere, we can conclude that your requirements are unsatisfiable.\n",
        "nothere",
        "nothere was not found in the package registry",
    ),
    "absent, in broken lines": (
        "error: No solution found when resolving dependencies\n  cause: Because nothere was not found in the provided package\n"
        "         locations and you require nothere, we can conclude that your\n         requirements are unsatisfiable.\n",
        "nothere",
        "nothere was not found in the provided package locations",
    ),
    "needed by another": (
        "error: No solution found when resolving dependencies\n  cause: Because nowhere was not found in the provided package "
        "locations and all versions of delta depend on nowhere>=1, we can conclude that all versions of delta cannot be "
        "used.\n         And because you require delta, we can conclude that your requirements are unsatisfiable.\n",
        "nowhere",
        "nowhere was not found in the provided package locations",
    ),
    "no such version": (
        "error: No solution found when resolving dependencies\n  cause: Because only alpha<=2.0 is available and you require "
        "alpha>=3, we can conclude that your requirements are unsatisfiable.\n",
        "alpha",
        "only alpha<=2.0 is available and you require alpha>=3",
    ),
    "conflict": (
        "error: No solution found when resolving dependencies\n  cause: Because all versions of gamma depend on alpha>=2 and "
        "all versions of beta depend on alpha<2, we can conclude that all versions of beta and all versions of gamma are "
        "incompatible.\n         And because you require beta and gamma, we can conclude that your requirements are "
        "unsatisfiable.\n",
        "alpha",
        "all versions of gamma depend on alpha>=2 and all versions of beta depend on alpha<2",
    ),
    "build": (
        "   Building bad==1.0\nerror: Failed to build `bad==1.0`\n  cause: The build backend returned an error\n  cause: Call "
        "to `back.build_wheel` failed (exit status: 1)\n\n         [stderr]\n         Traceback (most recent call last):\n"
        "         RuntimeError: no compiler found\n\nhint: Build failures usually indicate a problem\n",
        "bad",
        "bad could not be built: RuntimeError: no compiler found",
    ),
    "network": (
        "error: Options failed after 3 retries in 8.4s\n  cause: Failed to fetch: http://127.0.0.1:9/simple/foo/\n  cause: "
        "tcp connect error\n  cause: Connection refused (os error 111)\n",
        "foo",
        "http://127.0.0.1:9/simple/foo/ cannot be reached: Connection refused (os error 111)",
    ),
    "syntax": (
        'error: Couldn\'t parse requirement in `r.in` at position 0\n  cause: no such comparison operator "=>>"\n'
        "         alpha=>>3\n              ^^^^\n",
        None,
        'couldn\'t parse requirement in `r.in` at position 0: no such comparison operator "=>>"',
    ),
    "disk": ("error: Failed to install\n  cause: No space left on device (os error 28)\n", None, "the disk is full"),
}
PIP = {
    "absent": (
        "ERROR: Could not find a version that satisfies the requirement nothere (from versions: none)\n"
        "ERROR: No matching distribution found for nothere\n",
        "nothere",
        "no matching distribution found for nothere",
    ),
    "conflict": (
        "ERROR: Cannot install beta==1.0 and gamma==1.0 because these package versions have conflicting dependencies.\n\n"
        "The conflict is caused by:\n    beta 1.0 depends on alpha<2\n",
        "beta",
        "cannot install beta==1.0 and gamma==1.0 because these package versions have conflicting dependencies",
    ),
    "syntax": (
        "ERROR: Invalid requirement: 'alpha=>>3' (from line 1 of r.in)\n",
        None,
        "invalid requirement: 'alpha=>>3' (from line 1 of r.in)",
    ),
    "build": ("  ERROR: Failed building wheel for bad\nFailed to build bad\n", "bad", "bad could not be built"),
}


@pytest.mark.parametrize(
    ("output", "package", "what"), [*UV.values(), *PIP.values()], ids=[*UV, *(f"pip {k}" for k in PIP)]
)
def test_the_package_and_the_reason(output: str, package: str | None, what: str) -> None:
    failure = failure_of(output)
    assert failure.package == package
    assert failure.what.startswith(what)


def test_something_is_said_whatever_was_printed() -> None:
    assert failure_of("").what == "the installer printed nothing"
    assert failure_of("$ uv pip install x\nerror: a new kind of trouble\n").what == "a new kind of trouble"


@given(st.text())
def test_any_output_gives_a_short_sentence(output: str) -> None:
    failure = failure_of(output)
    assert failure.what
    assert len(failure.what) < 450
