"""The doors of the hook that is installed, under names of their own.

The program's own functions are given these as constants. Such a function may be pickled with its code, as cloudpickle does, and
is then unpickled where no hook is: there these names do nothing.
"""

from __future__ import annotations

from typing import Any, List

from benchmodels.pytorch.outermost import Doors, Token
from benchmodels.types import Module

_installed: List[Doors] = []


def install(doors: Doors) -> None:
    _installed.append(doors)


def uninstall(doors: Doors) -> None:
    if doors in _installed:
        _installed.remove(doors)


def enter(module: Module, args: Any, kwargs: Any, via: str) -> Token:
    return _installed[-1].enter(module, args, kwargs, via) if _installed else None


def failed(token: Token, error: BaseException) -> None:
    if _installed:
        _installed[-1].failed(token, error)


def leave(token: Token) -> None:
    if _installed:
        _installed[-1].leave(token)
