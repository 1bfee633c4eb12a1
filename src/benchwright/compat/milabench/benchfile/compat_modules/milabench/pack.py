"""The classes that a benchfile.py derives its own from.

What they would do (install, execute) is handed to `actions`, which asks benchwright to do it.
"""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

from . import actions, commands
from .fs import XPath
from .utils import assemble_options, merge


class BasePackage(actions.Pack):
    """A benchmark: its resolved entry and its folders."""

    def __init__(self, config: dict[str, Any], core: Any = None) -> None:
        self.config = config
        self.phase: str | None = None
        self.processes: list[Any] = []
        self.pack_path = XPath(config["definition"])
        self.dirs = SimpleNamespace(**{name: XPath(folder) for name, folder in config.get("dirs", {}).items()})
        self.dirs.code = self.pack_path
        self.constraints = None
        self.core = core or self

    def copy(self, config: dict[str, Any]) -> Any:
        made = type(self)(merge(self.config, config))
        made.phase = self.phase
        return made

    @property
    def argv(self) -> list[str]:
        words: list[str] = assemble_options(self.config.get("argv"))
        return words

    @property
    def tag(self) -> str:
        return ".".join(self.config["tag"])

    @property
    def working_directory(self) -> Any:
        return self.dirs.code

    @property
    def logdir(self) -> XPath:
        return XPath(self.dirs.runs / self.config["run_name"])

    def logfile(self, extension: str) -> XPath:
        return self.logdir / f"{self.tag}.{extension}"

    def make_env(self) -> dict[str, Any]:
        return {}

    def full_env(self, env: dict[str, Any] | None = None) -> dict[str, Any]:
        return {**self.make_env(), **self.config.get("env", {}), **(env or {})}

    def resolve_placeholder(self, text: Any) -> str:
        """The text with its placeholders filled."""
        return actions.fill(str(text))

    def resolve_argument(self, name: str, default: Any) -> Any:
        """The value of an argument of the entry as text, or the default."""
        given = self.config.get("argv")
        value = given.get(name) if isinstance(given, dict) else None
        return self.resolve_placeholder(value) if value else default

    async def message(self, *parts: Any) -> None:
        sys.stderr.write(" ".join(map(str, parts)) + "\n")

    async def message_error(self, error: BaseException) -> None:
        await self.message(f"{type(error).__name__}: {error}")

    async def send(self, **about: Any) -> None:
        await self.message(json.dumps(about, default=str))

    async def pip_install(self, *args: Any) -> Any:
        return await actions.perform("pip", args, pack=self)

    async def conda_install(self, *args: Any, **kwargs: Any) -> Any:
        return await actions.perform("conda", args, pack=self)

    async def execute(self, *args: Any, **options: Any) -> Any:
        return await actions.perform("execute", args, pack=self, options=options)

    async def python(self, *args: Any, **kwargs: Any) -> Any:
        return await self.execute("python", *args, **kwargs)

    async def voir(self, script: Any, args: Any = (), wrapper: Any = (), cwd: Any = None, **kwargs: Any) -> Any:
        words = script if isinstance(script, list) else [script]
        inner = commands.CmdCommand(self, *words, *args)
        return await commands.WrapperCommand(commands.VoirCommand(inner, cwd=cwd), *wrapper).execute()

    async def checked_install(self) -> None:
        await self.install()  # type: ignore[attr-defined]


class Package(BasePackage):
    """A benchmark with milabench's usual way to install, prepare and run."""

    base_requirements: Any = "requirements.in"
    prepare_script: Any = "prepare.py"
    main_script: Any = "main.py"

    def requirements_map(self, variant: str | None = None) -> dict[XPath, XPath]:
        variant = variant or self.config.get("install_variant")
        named = [self.base_requirements] if isinstance(self.base_requirements, str) else self.base_requirements
        files = [self.dirs.code / name for name in named]
        suffix = f".{variant}.txt" if variant else ".txt"
        return {file: file if variant == "unpinned" else file.with_suffix(suffix) for file in files}

    def requirements_files(self, variant: str | None = None) -> list[XPath]:
        return list(self.requirements_map(variant).values())

    def make_env(self) -> dict[str, Any]:
        return dict(actions.environment(self))

    async def install(self) -> Any:
        """benchwright's own installation: the folder's requirements, locked, then benchmate if it is used."""
        return await actions.perform("requirements", (), pack=self)

    async def prepare(self) -> Any:
        return await self.build_prepare_plan().execute(phase="prepare")

    def build_prepare_plan(self) -> Any:
        script = self.dirs.code / self.prepare_script if self.prepare_script else None
        if script is None or not script.exists():
            return commands.VoidCommand(self)
        return commands.PackCommand(self, script, *self.argv, env=self.make_env(), cwd=script.parent)

    async def run(self) -> Any:
        return await self.build_run_plan().execute()

    def build_run_plan(self) -> Any:
        main = self.dirs.code / self.main_script
        return commands.VoirCommand(commands.PackCommand(self, *self.argv, lazy=True), cwd=main.parent)
