"""What loading a `.pt2` file would run, found without loading it. Needs nothing but the standard library: the launcher asks too.

Every file that `torch.export.save` writes has a pickle in it, that of the inputs it was exported with, and torch loads it
without restraint where it cannot load it with. A pickle of plain tensors names nothing but what puts tensors together, and is
no danger; one that names anything else can run anything. So can shared libraries of AOTInductor, objects of other
libraries, functions that are no operators, and expressions for sizes, which are evaluated.
"""

from __future__ import annotations

import io
import json
import pickletools
import re
import zipfile
from typing import IO, Any, Dict, Iterator, List, Optional, Tuple, cast

MAX_PICKLE_BYTES = 100_000_000
PLAIN = ("bytearray", "bytes", "complex", "frozenset", "set")  # which a pickle makes by their names
# What a pickle of tensors names: what torch's own loader of weights allows, less what loads another pickle.
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
# What a program may call. `torch.ops.load_library`, which loads anything, is no operator of a namespace.
OPERATORS = re.compile(
    r"torch\.ops\.\w+(\.\w+)+|torch\.(_?sym_\w+|_check\w*)|torch\._higher_order_ops(\.\w+)+|math\.\w+|"
    r"torch\.fx\.experimental\.symbolic_shapes\.\w+|torch\._C\._set_grad_enabled|"
    r"_operator\.(abs|add|and_|concat|contains|eq|floordiv|ge|getitem|gt|iadd|iand|ifloordiv|imul|index|inv|invert|ior|isub|"
    r"is_|is_not|itruediv|ixor|le|lshift|lt|matmul|mod|mul|ne|neg|not_|or_|pos|pow|rshift|sub|truediv|truth|xor)"
)
DUNDERS = re.compile(r"__i?(and|or|xor|lshift|rshift)__")  # of operators
QUOTED = re.compile(r"'\w*'")
ARITHMETIC = re.compile(r"[\w\s.,()+\-*/%<>=!&|~]*")
CALLED = re.compile(r"([A-Za-z_][\w.]*)\s*\(")
COMPUTES = re.compile(r"[A-Z]\w*|ceiling|floor|sqrt|log|int|float")  # classes of sympy, and some of its functions


def code_in(path: str) -> Optional[str]:
    """What of a `.pt2` would run code of its own when it is loaded, in words; None: nothing. ValueError: it is no such file."""
    try:
        with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            return _ambiguous(archive, file) or _code_in(archive)
    except (zipfile.BadZipFile, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise ValueError(f"it cannot be read: {error}") from None


def _ambiguous(archive: zipfile.ZipFile, file: IO[bytes]) -> Optional[str]:
    """Why torch, which reads archives by rules of its own, may see another file than this."""
    names = [info.filename for info in archive.infolist()]
    file.seek(0)
    if file.read(4) != b"PK\x03\x04":
        return "there is something before its archive"
    if len({name.lower() for name in names}) < len(names):
        return "it has two members of one name"
    if len({name.partition("/")[0] for name in names if "/" in name}) > 1:
        return "it has two archives in one"
    return None


def _code_in(archive: zipfile.ZipFile) -> Optional[str]:
    for name in archive.namelist():
        inner = _without_root(name)
        if inner.startswith("data/aotinductor/"):
            return f"{inner} is compiled code of AOTInductor"
    for name, what in _pickles(archive):
        found = _code_in_artifact(archive, name) if what is None else what
        if found is not None:
            return f"{_without_root(name)} {found}"
    for name in archive.namelist():
        if _is_program(_without_root(name)):
            found = _code_in_program(_json(archive, name))
            if found is not None:
                return f"{_without_root(name)} {found}"
    return None


def _without_root(name: str) -> str:
    """Everything lies in one folder; of files of torch before 2.8 nothing does."""
    root, _, rest = name.partition("/")
    return rest if rest and not root.startswith(("serialized_", "extra_files")) else name


def _is_program(inner: str) -> bool:
    return (inner.startswith("models/") and inner.endswith(".json")) or inner == "serialized_exported_program.json"


def _pickles(archive: zipfile.ZipFile) -> Iterator[Tuple[str, Optional[str]]]:
    """Members that torch unpickles; with what is wrong with one where that is known already."""
    names = {_without_root(name): name for name in archive.namelist()}
    for inner, name in names.items():
        if inner.endswith(".pt") and inner.startswith(("data/", "serialized_")):
            yield name, None
        elif inner.endswith("_config.json") and inner.startswith(("data/weights/", "data/constants/")):
            folder = inner.rpartition("/")[0]
            for entry in _entries(_json(archive, name)):
                file = str(entry.get("path_name", ""))
                if file.startswith("custom_obj"):
                    yield names.get(f"{folder}/{file}", name), "is an object of another library, which loads itself"
                elif file.startswith("opaque_obj"):
                    yield names.get(f"{folder}/{file}", name), "is an object that Python's pickle loads"
                elif entry.get("use_pickle", True):
                    member = names.get(f"{folder}/{file}")
                    yield (name, f"names {file!r}, which is not in it") if member is None else (member, None)


def _entries(config: Any) -> Iterator[Dict[str, Any]]:
    held = config.get("config") if isinstance(config, dict) else None
    for entry in held.values() if isinstance(held, dict) else ():
        if isinstance(entry, dict):
            yield entry


def _json(archive: zipfile.ZipFile, name: str) -> Any:
    try:
        return json.loads(archive.read(name))
    except (ValueError, RecursionError):
        raise ValueError(f"{_without_root(name)} in it is no JSON") from None


def _code_in_artifact(archive: zipfile.ZipFile, name: str) -> Optional[str]:
    """Of what `torch.save` wrote: an archive with one pickle, and storages."""
    info = archive.getinfo(name)
    if not info.file_size:
        return None
    content = archive.read(name)
    if not zipfile.is_zipfile(io.BytesIO(content)):
        return "is a pickle of another kind than torch.save writes today"
    file = io.BytesIO(content)
    with zipfile.ZipFile(file) as inside:
        if _ambiguous(inside, file) is not None:
            return f"cannot be looked through: {_ambiguous(inside, file)}"
        pickles = [each for each in inside.infolist() if each.filename.lower().endswith(".pkl")]
        if len(pickles) != 1 or pickles[0].file_size > MAX_PICKLE_BYTES:
            return "has no single pickle of tensors in it"
        if any(each.filename.partition("/")[2].startswith("code/") for each in inside.infolist()):
            return "is a TorchScript archive"
        named = names_in_pickle(inside.read(pickles[0]))
    if named is None:
        return "is a pickle that hides what it calls"
    strange = sorted({each for each in named if not is_of_tensors(each)})
    return f"is a pickle that calls {', '.join(strange[:3])}" if strange else None


def is_of_tensors(name: str) -> bool:
    """Whether a name in a pickle is one that only puts tensors together."""
    return name in OF_TENSORS or bool(REBUILDS.fullmatch(name) or STORAGES.fullmatch(name))


def names_in_pickle(content: bytes) -> Optional[List[str]]:
    """Everything that a pickle takes from modules; None where that cannot be told without running it."""
    found: List[str] = []
    memo: Dict[int, Optional[str]] = {}
    texts: List[Optional[str]] = []  # what was pushed last, as far as it is a text
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
    except Exception:  # whatever a broken one makes of the reader
        return None
    return found


def _code_in_program(program: Any) -> Optional[str]:
    """Functions that are no operators, and expressions that are more than arithmetic."""
    waiting: List[Any] = [program]
    while waiting:
        one = waiting.pop()
        if isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            called = [one.get("target") if "inputs" in one else None, one.get("as_operator")]
            for target in called:
                if isinstance(target, str) and not is_operator(target):
                    return f"calls {target[:100]}, which is no operator"
            expression = one.get("expr_str")
            if isinstance(expression, str) and not is_arithmetic(expression):
                return f"has a size that is no arithmetic: {expression[:100]}"
            waiting += one.values()
    return None


def is_operator(target: str) -> bool:
    """Whether what a program calls is an operator, and no other function that torch can be asked for."""
    hidden = [part for part in target.split(".") if "__" in part and not DUNDERS.fullmatch(part)]
    return OPERATORS.fullmatch(target) is not None and not hidden


def is_arithmetic(expression: str) -> bool:
    """Whether an expression for a size, which sympy evaluates, only computes."""
    plain = QUOTED.sub("0", expression)
    if "__" in plain or not ARITHMETIC.fullmatch(plain):
        return False
    return all(COMPUTES.fullmatch(name) for name in CALLED.findall(plain))
