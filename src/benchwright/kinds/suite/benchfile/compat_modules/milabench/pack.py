"""The classes that a benchfile.py derives its own from. Nothing here does anything: benchwright reads the attributes."""

from __future__ import annotations

from typing import Any


class BasePackage:
    """`config`: the resolved entry; a benchfile that looks at it while it is read finds it empty."""

    def __init__(self, config: dict[str, object] | None = None, core: object = None) -> None:
        self.config = config or {}
        self.core = core


class Package(BasePackage):
    base_requirements: Any = "requirements.in"
    prepare_script: Any = "prepare.py"
    main_script: Any = "main.py"
