"""Running converters, and turning exceptions of exporters, converters and compilers into failures that name what is missing."""

from __future__ import annotations

import errno
import re
import subprocess
from contextlib import contextmanager
from typing import Iterator, List, Optional, Sequence

from benchmodels.failures import is_out_of_memory
from benchmodels.runtimes.base import Unsupported

MAX_TEXT = 600
# In the order in which they are believed; group 1 is the operator.
_OPERATORS = [
    re.compile(pattern)
    for pattern in (
        r"No ONNX function found for <OpOverload\(op='([\w.:]+)'",
        r"No ONNX function found for ([\w.:]+)",
        r"[Uu]nsupported operator:? '?\"?([\w.]+(?:::[\w.]+)?)",
        r"(?:not support|not supported|No conversion rule found for)[^:\n]*operations?:?\s*([\w.]+)",
        r"Could not find an implementation for ([\w.]+)\(\d+\)",
        r"No Op registered for ([\w.]+)",
        r"([\w.]+)\(-?\d+\) is not a registered function/op",
        r"Type '[^']*' of input parameter \([^)]*\) of operator \(([\w.]+)\)",
        r"missing (?:meta|fake)[^\n]*?\b(\w+::\w+|\w+\.\w+\.\w+)",
        r"(\w+::\w+(?:\.\w+)?|\w+\.\w+\.\w+): attempted to run this operator with (?:Meta|fake) tensors",
        r"Could not run '(\w+::\w+)",
        r"Error when translating node [^\n]*?\btarget=torch\.ops\.([\w.]+)",
        r"<OpOverload\(op='([\w.:]+)'",
        r"\b((?:aten|prims|torchvision|quantized)::\w+)",
    )
]
_NOT_OPERATORS = ("at::", "c10::", "std::", "torch::", "onnxruntime::", "ov::")
# What torch raises where a model's Python decides by the values of its tensors, or cannot be followed.
_CANNOT_BE_TRACED = ("GuardOnDataDependentSymNode", "DataDependentOutputException", "Unsupported", "UserError")
_BY_VALUES = re.compile(
    r"GuardOnDataDependentSymNode|DataDependentOutputException|data-dependent|its data is not allocated yet"
)
BY_VALUES = "the model's Python code reads values of its tensors, which are not known while it is traced"
_NO_COMPILER = re.compile(r"InvalidCxxCompiler|No working C\+\+ compiler|Failed to find C compiler")


def explained(stage: str, error: BaseException) -> Unsupported:
    """`error`, raised in `stage`, as a failure with a reason and a remedy."""
    chain = _chain(error)
    for link in chain:
        if isinstance(link, Unsupported):
            return link
    whole = "\n".join(map(_said, chain))
    cause = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    operator = operator_in(whole)
    if operator is not None:
        return Unsupported(stage, f"unsupported operator {operator}: {_short(_said(cause))}", operator)
    if _NO_COMPILER.search(whole):
        return Unsupported(stage, "no C++ compiler found: install g++, or set CXX", kind="unavailable")
    if _BY_VALUES.search(_said(cause)):
        return Unsupported(stage, f"{BY_VALUES}: {_short(_said(cause)).partition('. ')[0]}")
    kind = "unsupported" if any(type(link).__name__ in _CANNOT_BE_TRACED for link in chain) else "error"
    return Unsupported(stage, _short(_said(cause)), kind=kind)


@contextmanager
def explaining(stage: str) -> Iterator[None]:
    """Turns exceptions inside into Unsupported, except for a lack of memory or disk space."""
    try:
        yield
    except MemoryError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EFBIG):
            raise
        raise explained(stage, error) from error
    except Exception as error:
        for link in _chain(error):
            if is_out_of_memory(link):  # a runtime's own exception, or inside of an exporter's
                raise MemoryError(_short(_said(link))) from error
        raise explained(stage, error) from error


def run_converter(argv: Sequence[str], cwd: str) -> subprocess.CompletedProcess[str]:
    """A program that has ended, with all that it printed as its stdout."""
    return subprocess.run(
        argv,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def operator_in(text: str) -> Optional[str]:
    """The operator that a message complains about, as `aten::foo` or `Foo`."""
    for pattern in _OPERATORS:
        for match in pattern.finditer(text):
            found = match.group(1).strip(".")
            if not found.startswith(_NOT_OPERATORS):
                return _written_usually(found)
    return None


def _written_usually(found: str) -> str:
    """`aten.foo.default` and `aten::foo.out` are `aten::foo`."""
    if "::" in found:
        return found.partition(".")[0]
    parts = found.split(".")
    return f"{parts[0]}::{parts[1]}" if len(parts) > 1 else found


def _chain(error: BaseException) -> List[BaseException]:
    """It and what it came from, the cause last."""
    chain: List[BaseException] = []
    link: Optional[BaseException] = error
    while link is not None and link not in chain and len(chain) < 10:
        chain.append(link)
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return chain


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _short(message: str) -> str:
    """The first lines that say something."""
    lines = [line.strip() for line in message.splitlines() if line.strip(" =-─\t")]
    text = " ".join(re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines[:4])
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
