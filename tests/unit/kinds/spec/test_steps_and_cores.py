"""Steps of a launch as a file for a shell, and the cores a test asks for."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.kinds.spec.cores import cores_in_list, cores_in_mask, present
from benchwright.kinds.spec.plan import CommandStep, script_of


def _run(tmp_path: Path, *steps: CommandStep) -> tuple[int, str]:
    file = tmp_path / "steps.sh"
    file.write_text(script_of(steps))
    done = subprocess.run(["/bin/sh", str(file)], capture_output=True, text=True)
    return done.returncode, done.stdout


def test_steps_run_in_order_with_their_own_environment(tmp_path: Path) -> None:
    steps = (
        CommandStep(("printf", "%s|", "a b", "$X", "'")),
        CommandStep(("sh", "-c", "printf %s= $X"), {"X": "1 2"}),
        CommandStep("printf $X$X | tr 3 4", {"X": "3"}),
        CommandStep("cd / && pwd"),
        CommandStep(("pwd",)),
    )
    code, out = _run(tmp_path, *steps)
    assert code == 0
    assert out.startswith("a b|$X|'|1=2=44/\n")
    assert out.splitlines()[-1] != "/"  # a step that changes its folder changes only its own


@pytest.mark.parametrize("bad", [("false",), "false", "exit 1", "false; true; exit 1", "cat /nothing | false"])
def test_the_first_step_that_fails_ends_the_rest(tmp_path: Path, bad: str | tuple[str, ...]) -> None:
    code, out = _run(tmp_path, CommandStep(("echo", "before")), CommandStep(bad), CommandStep(("echo", "after")))
    assert code == 1
    assert out == "before\n"


def test_the_exit_code_is_that_of_the_step(tmp_path: Path) -> None:
    assert _run(tmp_path, CommandStep("exit 7"), CommandStep(("true",)))[0] == 7
    assert _run(tmp_path, CommandStep(("true",)), CommandStep(("sh", "-c", "exit 9")))[0] == 9


def test_a_file_with_a_secret_does_not_stay(tmp_path: Path) -> None:
    secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
    code, out = _run(tmp_path, CommandStep(("echo", "--token", secret)), CommandStep("echo on | cat"))
    assert (code, out) == (0, f"--token {secret}\non\n")
    assert not (tmp_path / "steps.sh").exists()
    _run(tmp_path, CommandStep(("echo", "plain")), CommandStep(("true",)))
    assert (tmp_path / "steps.sh").exists()


def test_masks_and_lists() -> None:
    assert cores_in_mask("c") == (2, 3)
    assert cores_in_mask("0f") == (0, 1, 2, 3)
    assert cores_in_mask("0x80") == (7,)
    assert cores_in_list("0-2, 5") == (0, 1, 2, 5)
    for bad in ("", "g", "0", "-1", "0x"):
        with pytest.raises(InvalidInput, match="mask"):
            cores_in_mask(bad)
    for bad in ("", "a", "3-1", "99999", "1,,2"):
        with pytest.raises(InvalidInput, match="list"):
            cores_in_list(bad)


def test_only_cores_that_exist_are_used() -> None:
    assert present((0, 1), (0, 1, 2)) == ((0, 1), None)
    there, said = present((1, 5), (0, 1))
    assert there == (1,)
    assert said == "asks for core 5, which cannot be used here: pinned to 1 only"
    assert present((4, 5), (0, 1)) == ((), "asks for cores 4, 5, which cannot be used here: not pinned")
