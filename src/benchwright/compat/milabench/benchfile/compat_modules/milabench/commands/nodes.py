"""The commands of a plan that stand for one process, and the lists of them.

Where a process runs (ssh, containers) is benchwright's part: those wrappers only note it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from .. import actions
from ..fs import XPath
from ..utils import select_nodes

VOIR_CONFIG = "@voir-config@"  # stands for the file that benchwright writes


class PlanNode:
    """One node of a plan: around a pack, or around another command. The options of the outer one win."""

    def __init__(self, pack_or_exec: Any, **options: Any) -> None:
        is_pack = isinstance(pack_or_exec, actions.Pack)
        if not is_pack and pack_or_exec is not None and not isinstance(pack_or_exec, PlanNode):
            raise TypeError(f"a command wraps a pack or a command, not {pack_or_exec!r}")
        self._pack = pack_or_exec if is_pack else None
        self.exec: Any = None if is_pack else pack_or_exec
        self._kwargs = options
        self.remote = False

    @property
    def pack(self) -> Any:
        return self._pack if self._pack is not None else self.exec.pack

    @property
    def options(self) -> dict[str, Any]:
        return {**(self.exec.options if self.exec is not None else {}), **self._kwargs}

    def kwargs(self) -> dict[str, Any]:
        return self.options

    def use_stdout(self) -> Any:
        return self.set_run_options(use_stdout=True)

    def set_run_options(self, **options: Any) -> Any:
        self._kwargs = {**self._kwargs, **options}
        return self

    def copy(self, pack: Any) -> Any:
        """The same plan for another pack."""
        made = copy.copy(self)
        made._kwargs = dict(self._kwargs)
        if self._pack is not None:
            made._pack = pack
        elif self.exec is not None:
            made.exec = self.exec.copy(pack)
        return made

    def packs(self) -> Iterator[Any]:
        yield self.pack

    def argv(self, **kwargs: Any) -> list[Any]:
        return [*self._argv(**kwargs), *(self.exec.argv(**kwargs) if self.exec is not None else ())]

    def _argv(self, **kwargs: Any) -> list[Any]:
        return []

    def commands(self) -> Iterator[tuple[Any, list[Any], dict[str, Any]]]:
        yield self.pack, self.argv(), self.options

    async def execute(self, phase: str = "run", **kwargs: Any) -> Any:
        """Each process, one after the other, up to the first that fails; a run is only planned."""
        result = 0
        for pack, argv, options in self.commands():
            pack.phase = phase
            result = await actions.perform("execute", argv, pack=pack, options=options)
            if result != 0:
                break
        return result


Command = SingleCmdCommand = PlanNode  # as benchfiles name it


class ListCommand(PlanNode):
    """Commands that run at the same time."""

    def __init__(self, *executors: Any, **options: Any) -> None:
        super().__init__(None, **options)
        self._executors = executors

    @property
    def executors(self) -> Any:
        return self._executors

    @property
    def pack(self) -> Any:
        return self.executors[0].pack

    def packs(self) -> Iterator[Any]:
        for one in self.executors:
            yield from one.packs()

    def commands(self) -> Iterator[tuple[Any, list[Any], dict[str, Any]]]:
        for one in self.executors:
            for pack, argv, options in one.commands():
                yield pack, argv, {**self._kwargs, **options}

    def set_run_options(self, **options: Any) -> Any:
        for one in self._executors:
            one.set_run_options(**options)
        return self

    def copy(self, pack: Any) -> Any:
        made = copy.copy(self)
        made._executors = tuple(one.copy(pack) for one in self._executors)
        return made


class SequenceCommand(ListCommand):
    """Commands that run one after the other, up to the first that fails."""

    def commands(self) -> Iterator[tuple[Any, list[Any], dict[str, Any]]]:
        for number, (pack, argv, options) in enumerate(super().commands()):
            yield pack, argv, {**options, "sequence": number}


class CmdCommand(PlanNode):
    """Words as they are."""

    def __init__(self, pack: Any, *words: Any, **options: Any) -> None:
        if isinstance(pack, PlanNode):
            raise TypeError(f"{type(self).__name__} takes a pack, not another command")
        super().__init__(pack, **options)
        self.cmd_argv = words

    def _argv(self, **kwargs: Any) -> list[Any]:
        return list(self.cmd_argv)


class SimpleCommand(PlanNode):
    def __init__(self, pack_or_exec: Any, *words: Any, **options: Any) -> None:
        super().__init__(pack_or_exec, **options)
        self.args = words

    def argv(self, **kwargs: Any) -> list[Any]:
        return [*self.pack.argv, *self.args]


class VoidCommand(CmdCommand):
    def __init__(self, pack: Any, *words: Any, **options: Any) -> None:
        super().__init__(pack, "true", *words, **options)


class PackCommand(CmdCommand):
    """The main script, or the script that is the first word, with its arguments; lazy: those of the pack at the end."""

    def __init__(self, pack: Any, *words: Any, lazy: bool = False, **options: Any) -> None:
        named = bool(words) and XPath(words[0]).exists()
        super().__init__(pack, *(words[1:] if named else words), **options)
        self.script = words[0] if named else None
        self.lazy = lazy

    def command_arguments(self, **kwargs: Any) -> list[Any]:
        return list(self.pack.argv) if self.lazy else super()._argv()

    def _argv(self, **kwargs: Any) -> list[Any]:
        script = self.script or self.pack.main_script
        path = XPath(script) if XPath(script).is_absolute() else self.pack.dirs.code / script
        start = ["-m", str(script)] if path.is_dir() else [str(path)]
        return [*start, *self.command_arguments()]


class WrapperCommand(PlanNode):
    """Words in front of those of another command."""

    def __init__(self, executor: Any, *words: Any, **options: Any) -> None:
        super().__init__(executor, **options)
        self.wrapper_argv: Any = words

    def _argv(self, **kwargs: Any) -> list[Any]:
        return list(self.wrapper_argv)


class WorkingDir(WrapperCommand):
    """benchwright sets the folder and the environment itself."""

    def __init__(self, cmd: Any, **options: Any) -> None:
        super().__init__(cmd, **{"cwd": str(cmd.pack.working_directory), **options})

    def _argv(self, **kwargs: Any) -> list[Any]:
        return []


class ActivatorCommand(WrapperCommand):
    """benchwright starts every process in its environment."""

    def __init__(self, pack: Any, **options: Any) -> None:
        super().__init__(pack, **options)


class DockerRunCommand(WrapperCommand):
    """benchwright wraps the command itself where the system has a container."""

    def __init__(self, executor: Any, config: Any = None, *words: Any, **options: Any) -> None:
        super().__init__(executor, **options)


class SSHCommand(WrapperCommand):
    """On another machine, which benchwright reaches by its own connection."""

    def __init__(
        self, executor: Any, host: str, *words: Any, user: Any = None, key: Any = None, port: int = 22, **options: Any
    ) -> None:
        super().__init__(executor, **{**_machine_at(host, executor.pack.config["system"]["nodes"]), **options})
        self.host = host


def _machine_at(host: str, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    """Which of the system's machines it is, as options of a command."""
    for rank, node in enumerate(select_nodes(nodes, len(nodes))):
        if host in (node.get("ip"), node.get("hostname"), node["name"]):
            return {"node_name": node["name"], "node_rank": rank}
    if host in ("localhost", "127.0.0.1", "::1"):
        return {}
    raise ValueError(f"ssh to {host}: the system file has no such machine under `nodes`")


class VoirCommand(WrapperCommand):
    """Run by voir, with the entry's options for it."""

    def __init__(self, executor: Any, *words: Any, module: bool = False, **options: Any) -> None:
        program = "voir" if module else f"{executor.pack.config['dirs']['venv']}/bin/voir"
        super().__init__(executor, program, **{"setsid": True, **options})
        self.voir_argv = words

    def _argv(self, **kwargs: Any) -> list[Any]:
        if not use_voir:
            return ["python"]
        config = ["--config", VOIR_CONFIG] if self.pack.config.get("voir") else []
        return [*self.wrapper_argv, *config, *self.voir_argv]


use_voir = True
