"""Progress of install, prepare and pin: lines for a pipe, one redrawn line for a terminal."""

from __future__ import annotations

from io import StringIO

from processes import wait_for

from benchwright.cli.suites.progress import PhaseProgress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


class Gone(StringIO):
    tried = 0

    def write(self, text: str) -> int:
        self.tried += 1
        raise BrokenPipeError


def test_a_pipe_gets_a_line_for_each_step_and_each_end() -> None:
    stream = StringIO()
    with PhaseProgress(stream=stream) as progress:
        progress.on_step("torch", "creating an environment")
        progress.on_step_done("torch", "built in 2.5 s, 1 package")
        progress.on_step_done("jax", "failed after 60 s")
        progress.on_step_done("mlx")
        progress.on_note("voir is added")
    assert stream.getvalue().splitlines() == [
        "torch: creating an environment",
        "torch: built in 2.5 s, 1 package",
        "jax: failed after 60 s",
        "note: voir is added",
    ]


def test_a_terminal_sees_what_goes_on_and_for_how_long_and_is_left_clean() -> None:
    stream = Terminal()
    with PhaseProgress(stream=stream) as progress:
        progress.on_step("torch", "installing")
        assert wait_for(lambda: "torch: installing, " in stream.getvalue())
    assert stream.getvalue().endswith("\r\x1b[K")


def test_nobody_reads_and_the_phase_goes_on() -> None:
    heard, unheard = Gone(), Gone()
    with PhaseProgress(stream=heard) as progress:
        progress.on_step("torch", "installing")
        progress.say("more")
    with PhaseProgress(quiet=True, stream=unheard) as progress:
        progress.on_step("torch", "installing")
    assert (heard.tried > 0, unheard.tried) == (True, 0)
