"""`python -m benchmodels SCRIPT ARGS…`: runs the script as `python SCRIPT ARGS…` does and, as BENCHPROBE_CONFIG says, lists
its models, measures one, builds one for a runtime, or times its training.
"""

from __future__ import annotations

import sys
from typing import List

from benchmodels import settings as kinds
from benchmodels.settings import ModelSettings, read_settings


def main(argv: List[str]) -> int:
    """Returns the exit code: the script's own, if its models are only listed."""
    try:
        settings = read_settings()
    except ValueError as error:
        print(f"benchmodels: {error}", file=sys.stderr)
        return 2
    if not (argv or settings.file or settings.zoo or settings.built_by_caller):
        print("benchmodels: name a script to run", file=sys.stderr)
        return 2
    return _run(settings, argv[0] if argv else "", argv[1:])


def _run(settings: ModelSettings, script: str, args: List[str]) -> int:
    if settings.mode == kinds.MEASURE:
        from benchmodels.measure.measure import measure

        return measure(settings, script, args)
    if settings.mode == kinds.BUILD:
        from benchmodels.build.build import build

        return build(settings, script, args)
    if settings.mode == kinds.TRAIN:
        from benchmodels.training.train import train

        return train(settings, script, args)
    from benchmodels.discover.discover import discover

    return discover(settings, script, args)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
