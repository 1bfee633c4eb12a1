"""Finds the code that loading a `.pt2` file would run, without loading it. Standard library only: benchwright uses this too.

Every file that `torch.export.save` writes contains a pickle of the inputs it was exported with, and torch falls back to
loading it without restrictions. A pickle of plain tensors names only functions that assemble tensors, and is harmless; one
that names anything else can run anything. So can AOTInductor's shared libraries, objects of other libraries, functions that
are not operators, and expressions for sizes, which are evaluated.
"""

from __future__ import annotations

import io
import json
import pickletools
import re
import zipfile
from typing import IO, Any, Dict, Iterator, List, Optional, Tuple, cast

MAX_PICKLE_BYTES = 100_000_000
PLAIN = ("bytearray", "bytes", "complex", "frozenset", "set")  # types that a pickle calls by name
# Names in a pickle of tensors: those that torch's weights-only loader allows, except loaders of further pickles.
OF_TENSORS = frozenset(
    {
        *("collections.OrderedDict", "collections.Counter", "_codecs.encode"),
        *(f"{module}.{name}" for module in ("builtins", "__builtin__") for name in PLAIN),
        *("torch.Size", "torch.device", "torch.Tensor", "torch.nn.parameter.Parameter", "torch.nn.parameter.Buffer"),
        *("torch.serialization._get_layout", "torch._tensor._rebuild_from_type_v2"),
        *("torch.storage.TypedStorage", "torch.storage.UntypedStorage"),
        *("torch.per_tensor_affine", "torch.per_tensor_symmetric", "torch.per_channel_affine"),
        *("torch.per_channel_symmetric", "torch.per_channel_affine_float_qparams"),
    }
)
REBUILDS = re.compile(r"torch\._utils\._rebuild_\w+")
STORAGES = re.compile(
    r"torch(\.cuda|\.storage)?\.(\w+Storage|\w+Tensor|q?u?int\d+(x\d+)?|b?float\w*|complex\d+|double|half|long|short|bool)"
)
TEXT_OPCODES = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")
GET_OPCODES = ("BINGET", "LONG_BINGET", "GET")
PUT_OPCODES = ("BINPUT", "LONG_BINPUT", "PUT")
UNTELLING_OPCODES = ("INST", "OBJ", "EXT1", "EXT2", "EXT4")
# What a program may call; not `torch.ops.load_library`, which loads anything and belongs to no namespace.
OPERATORS = re.compile(
    r"torch\.ops\.\w+(\.\w+)+|torch\.(_?sym_\w+|_check\w*)|torch\._higher_order_ops(\.\w+)+|math\.\w+|"
    r"torch\.fx\.experimental\.symbolic_shapes\.\w+|torch\._C\._set_grad_enabled|"
    r"_operator\.(abs|add|and_|concat|contains|eq|floordiv|ge|getitem|gt|iadd|iand|ifloordiv|imul|index|inv|invert|ior|isub|"
    r"is_|is_not|itruediv|ixor|le|lshift|lt|matmul|mod|mul|ne|neg|not_|or_|pos|pow|rshift|sub|truediv|truth|xor)"
)
DUNDERS = re.compile(r"__i?(and|or|xor|lshift|rshift)__")  # dunder methods that are operators
QUOTED = re.compile(r"'\w*'")
ARITHMETIC = re.compile(r"[\w\s.,()+\-*/%<>=!&|~]*")
CALLED = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
COMPUTES = re.compile(r"[A-Z]\w*|ceiling|floor|sqrt|log|int|float")  # sympy's classes, and some of its functions


def code_in(path: str) -> Optional[str]:
    """Describes the code that loading a `.pt2` would run; None if there is none. Raises ValueError if it is no such file."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            return _ambiguous(archive, file) or _code_in(archive)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"cannot be read: {error}") from None


def _ambiguous(archive: zipfile.ZipFile, file: IO[bytes]) -> Optional[str]:
    """Why torch, which reads archives by its own rules, may see other contents than we do."""
    names = [info.filename for info in archive.infolist()]
    file.seek(0)
    if file.read(4) != b"PK\x03\x04":
        return "there is data before its archive"
    if len({name.lower() for name in names}) < len(names):
        return "it has two members of the same name"
    if len({name.partition("/")[0] for name in names if "/" in name}) > 1:
        return "it has two archives in one"
    return None


def _code_in(archive: zipfile.ZipFile) -> Optional[str]:
    for name, found in _findings(archive):
        if found is not None:
            return f"{_without_root(name)} {found}"
    return None


def _findings(archive: zipfile.ZipFile) -> Iterator[Tuple[str, Optional[str]]]:
    for name in archive.namelist():
        if _without_root(name).startswith("data/aotinductor/"):
            yield name, "is compiled code of AOTInductor"
    for name, known in _pickles(archive):
        yield name, _code_in_artifact(archive, name) if known is None else known
    for name in archive.namelist():
        if _is_program(_without_root(name)):
            yield name, _code_in_program(_json(archive, name))


def _without_root(name: str) -> str:
    """All members lie in one folder; before torch 2.8, none do."""
    root, _, rest = name.partition("/")
    return rest if rest and not root.startswith(("serialized_", "extra_files")) else name


def _is_program(inner: str) -> bool:
    return (inner.startswith("models/") and inner.endswith(".json")) or inner == "serialized_exported_program.json"


def _pickles(archive: zipfile.ZipFile) -> Iterator[Tuple[str, Optional[str]]]:
    """Members that torch unpickles, each with its fault if that is known already."""
    names = {_without_root(name): name for name in archive.namelist()}
    for inner, name in names.items():
        if inner.endswith(".pt") and inner.startswith(("data/", "serialized_")):
            yield name, None
        elif inner.endswith("_config.json") and inner.startswith(("data/weights/", "data/constants/")):
            folder = inner.rpartition("/")[0]
            for entry in _entries(_json(archive, name)):
                file = str(entry.get("path_name", ""))
                if file.startswith("custom_obj"):
                    yield (
                        names.get(f"{folder}/{file}", name),
                        "is an object of another library, which runs code to load it",
                    )
                elif file.startswith("opaque_obj"):
                    yield names.get(f"{folder}/{file}", name), "is an object loaded by Python's pickle"
                elif entry.get("use_pickle", True):
                    member = names.get(f"{folder}/{file}")
                    yield (name, f"names {file!r}, which is missing") if member is None else (member, None)


def _entries(config: Any) -> Iterator[Dict[str, Any]]:
    held = config.get("config") if isinstance(config, dict) else None
    for entry in held.values() if isinstance(held, dict) else ():
        if isinstance(entry, dict):
            yield entry


def _json(archive: zipfile.ZipFile, name: str) -> Any:
    try:
        return json.loads(archive.read(name))
    except (ValueError, RecursionError):
        raise ValueError(f"{_without_root(name)} in it is not JSON") from None


def _code_in_artifact(archive: zipfile.ZipFile, name: str) -> Optional[str]:
    """For a file of `torch.save`: an archive with one pickle, and storages."""
    content = archive.read(name)
    if not content:
        return None
    file = io.BytesIO(content)
    if not zipfile.is_zipfile(file):
        return "is not a pickle in the current format of torch.save"
    with zipfile.ZipFile(file) as inside:
        doubt = _ambiguous(inside, file)
        if doubt is not None:
            return f"cannot be inspected: {doubt}"
        pickles = [each for each in inside.infolist() if each.filename.lower().endswith(".pkl")]
        if len(pickles) != 1 or pickles[0].file_size > MAX_PICKLE_BYTES:
            return "does not contain exactly one pickle of tensors"
        if any(each.filename.partition("/")[2].startswith("code/") for each in inside.infolist()):
            return "is a TorchScript archive"
        named = names_in_pickle(inside.read(pickles[0]))
    if named is None:
        return "is a pickle that conceals what it calls"
    strange = sorted({each for each in named if not is_of_tensors(each)})
    return f"is a pickle that calls {', '.join(strange[:3])}" if strange else None


def is_of_tensors(name: str) -> bool:
    """Whether a name in a pickle only assembles tensors."""
    return name in OF_TENSORS or bool(REBUILDS.fullmatch(name) or STORAGES.fullmatch(name))


def names_in_pickle(content: bytes) -> Optional[List[str]]:
    """Everything that a pickle imports; None if only running it could tell."""
    found: List[str] = []
    memo: Dict[int, Optional[str]] = {}
    texts: List[Optional[str]] = []  # the stack, as far as it holds text
    try:
        for opcode, given, _ in pickletools.genops(content):
            name, argument = opcode.name, cast(Any, given)
            if name == "GLOBAL":
                found.append(str(argument).replace(" ", "."))
                texts.append(None)
            elif name == "STACK_GLOBAL":
                if len(texts) < 2 or None in texts[-2:]:
                    return None
                found.append(".".join(str(each) for each in texts[-2:]))
                texts.append(None)
            elif name in UNTELLING_OPCODES:
                return None
            elif name in TEXT_OPCODES:
                texts.append(argument)
            elif name in GET_OPCODES:
                texts.append(memo.get(int(argument)))
            elif name in PUT_OPCODES:
                memo[int(argument)] = texts[-1] if texts else None
            elif name == "MEMOIZE":
                memo[len(memo)] = texts[-1] if texts else None
            elif name not in ("PROTO", "FRAME"):
                texts.append(None)
    except Exception:  # a broken pickle may raise anything
        return None
    return found


def _code_in_program(program: Any) -> Optional[str]:
    """Calls of functions that are not operators, and expressions that are more than arithmetic."""
    waiting: List[Any] = [program]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            called = [one.get("target") if "inputs" in one else None, one.get("as_operator")]
            for target in called:
                if isinstance(target, str) and not is_operator(target):
                    return f"calls {target[:100]}, which is not an operator"
            expression = one.get("expr_str")
            if isinstance(expression, str) and not is_arithmetic(expression):
                return f"has a size that is more than arithmetic: {expression[:100]}"
            waiting += one.values()
    return None


def is_operator(target: str) -> bool:
    """Whether a program's call target is an operator, rather than any other function that torch would look up."""
    hidden = [part for part in target.split(".") if "__" in part and not DUNDERS.fullmatch(part)]
    return OPERATORS.fullmatch(target) is not None and not hidden


def is_arithmetic(expression: str) -> bool:
    """Whether an expression for a size, which sympy evaluates, is mere arithmetic."""
    plain = QUOTED.sub("0", expression)
    if "__" in plain or not ARITHMETIC.fullmatch(plain):
        return False
    return all(COMPUTES.fullmatch(name) for name in CALLED.findall(plain))
