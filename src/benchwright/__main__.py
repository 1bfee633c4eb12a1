"""The program: `benchwright`, `bw`, `python -m benchwright`."""

from __future__ import annotations

import gc

from benchwright.agent.processes.fast_exit import leave


def main() -> None:
    """Runs the command line, and ends this process."""
    # A short-lived process: nearly all that it allocates lives to its end, and searching that for cycles took 50 ms.
    gc.set_threshold(100_000)
    from benchwright.cli.main import main as command_line  # after that

    try:
        command_line()
    except SystemExit as end:
        leave(end.code if isinstance(end.code, int) else 0)


if __name__ == "__main__":
    main()
