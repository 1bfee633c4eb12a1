"""Jobs on this machine at a lower priority: `--on nice:10`."""

from __future__ import annotations

from benchwright.core.errors import InvalidInput
from benchwright.executors.base import Executor, Site, runs_here
from benchwright.executors.local import LocalExecutor


class NiceExecutor(LocalExecutor):
    """As the local one, with an agent that is nice: so is everything it starts."""

    def __init__(self, level: int) -> None:
        super().__init__()
        self._level = level

    def _agent_command(self) -> list[str]:
        return ["nice", "-n", str(self._level), *super()._agent_command()]


@runs_here
def open_executor(argument: str, site: Site) -> Executor:
    """`argument` is what follows the colon of `--on nice:10`; `site` knows the base folder and the system file."""
    if not argument.isdecimal() or int(argument) > 19:
        raise InvalidInput(f"'{argument}' is not a priority", where="--on nice", remedy="write nice:N, N from 0 to 19")
    return NiceExecutor(int(argument))
