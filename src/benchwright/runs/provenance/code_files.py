"""Which files a command consists of, found without running it: its program, its scripts, and their own modules."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Sequence
from itertools import pairwise

from benchwright.core.job import Job

_MOST_MODULES = 400
_MOST_BYTES = 16 << 20  # read to look for imports
_CODE = tuple(".py .pyw .sh .bash .pl .rb .js .mjs .ts .jl .lua .r .php .jar .so .ipynb".split())
_SETTINGS = (".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".gin", ".json", ".xml", ".prototxt")
_MODELS = (".onnx", ".pt", ".pth", ".pt2", ".pte", ".safetensors", ".gguf", ".tflite", ".pb", ".engine")
# The program writes the file that follows such an option, so it differs after every launch.
_WRITTEN = re.compile(
    r"-o|--?[\w-]*(?:out|log|save|dest|result|report|export|write|dump|ckpt|checkpoint|trace|profile)[\w-]*"
)
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+\(?([^\n#;]*)|import[ \t]+([^\n#;]+))", re.MULTILINE
)
_NAME = re.compile(rb"[\w.]+")
INTERPRETER = re.compile(
    r"(?:python|pypy)[\d.]*|bash|sh|dash|zsh|node|perl|ruby|Rscript|julia|torchrun|accelerate|mpirun|srun|deepspeed"
)


def code_files(job: Job, also: Sequence[str], search_path: str) -> list[str]:
    """Absolute paths, in order, without data and installed packages; `also`: files named by the benchmark's kind."""
    words = _words(job)
    found = [path for word in words if (path := _file(word, job.cwd)) is not None and path not in job.files]
    if (program := _program(words, job, search_path)) is not None:
        found.insert(0, os.path.realpath(program))
    found += [*also, *_modules_run(words, job.cwd)]
    python_path = job.env.get("PYTHONPATH", os.environ.get("PYTHONPATH")) or ""
    roots = [job.cwd] if "-m" in words else []
    roots += [folder for folder in python_path.split(os.pathsep) if folder]
    return list(dict.fromkeys([*found, *_own_modules(found, roots)]))


def tool_files(job: Job, search_path: str) -> set[str]:
    """Files of `code_files` that only run the measured code: interpreters, launchers, programs of a virtual
    environment, and whatever was found on the PATH. The repository that one lies in says nothing about that code."""
    words = _words(job)
    tools = {path for word in words if (path := _file(word, job.cwd)) is not None and _is_tool(path)}
    program = _program(words, job, search_path)
    if program is not None and ("/" not in words[0] or _is_tool(program)):
        tools.add(os.path.realpath(program))
    return tools


def _is_tool(path: str) -> bool:
    folder, name = os.path.split(path)
    marks = (os.path.join(os.path.dirname(folder), mark) for mark in ("pyvenv.cfg", "conda-meta"))
    return INTERPRETER.fullmatch(name) is not None or any(map(os.path.exists, marks))


def _program(words: Sequence[str], job: Job, search_path: str) -> str | None:
    return shutil.which(words[0], path=os.pathsep.join([*job.path, search_path])) if words else None


def _words(job: Job) -> list[str]:
    """Without the words that name files the program writes."""
    words = list(job.argv)
    if job.shell:
        try:
            words = shlex.split(words[0], comments=False)
        except ValueError:
            words = words[0].split()
    kept = []
    for number, word in enumerate(words):
        before = words[number - 1] if number else ""
        if not (_WRITTEN.fullmatch(before) or before.endswith(">") or _WRITTEN.fullmatch(word.partition("=")[0])):
            kept.append(word)
    return kept


def _file(word: str, folder: str) -> str | None:
    """The file of code, settings or a model that a word names, alone or as `--config=FILE`."""
    for text in (word, word.partition("=")[2]):
        path = os.path.join(folder, os.path.expanduser(text)) if text else ""
        ending = os.path.splitext(path)[1].lower()
        is_program = "/" in text and os.access(path, os.X_OK)
        if (ending in (*_CODE, *_SETTINGS, *_MODELS) or is_program) and os.path.isfile(path):
            return os.path.normpath(path)
    return None


def _modules_run(words: Sequence[str], folder: str) -> Iterator[str]:
    """Of `python -m package.module`."""
    for option, name in pairwise(words):
        if option == "-m" and re.fullmatch(r"[\w.]+", name):
            yield from _named(name.split("."), folder)
            yield from _named([*name.split("."), "__main__"], folder)


def _own_modules(scripts: Sequence[str], more: Sequence[str]) -> Iterator[str]:
    """Modules that Python scripts import from beside them or from the folders `more`, directly or not."""
    queue = [path for path in scripts if path.endswith((".py", ".pyw"))]
    seen, left = set(queue), _MOST_BYTES
    roots = [*dict.fromkeys(map(os.path.dirname, queue)), *more]
    while queue and len(seen) < _MOST_MODULES and left > 0:
        path = queue.pop(0)
        try:
            with open(path, "rb") as file:
                text = file.read(left)
        except OSError:
            continue
        left -= len(text)
        for module in _imported(text, path, roots):
            if module not in seen:
                seen.add(module)
                queue.append(module)
                yield module


def _imported(text: bytes, path: str, roots: Sequence[str]) -> Iterator[str]:
    for source, names, plain in _IMPORT.findall(text):
        if plain:
            for name in plain.split(b","):
                if first := _NAME.match(name.strip()):
                    yield from _found(first[0].decode().split("."), roots)
            continue
        dots = len(source) - len(source.lstrip(b"."))
        parts = [part for part in source.lstrip(b".").decode().split(".") if part]
        places = [os.path.normpath(os.path.join(os.path.dirname(path), *[".."] * (dots - 1)))] if dots else roots
        yield from _found(parts, places)
        for name in _NAME.findall(names)[:50]:
            yield from _found([*parts, name.decode()], places)


def _found(parts: Sequence[str], roots: Sequence[str]) -> Iterator[str]:
    for root in roots:
        found = list(_named(parts, root))
        if found:
            yield from found
            return


def _named(parts: Sequence[str], root: str) -> Iterator[str]:
    """The files below `root` that importing `a.b.c` runs."""
    place = root
    for part in parts:
        place = os.path.join(place, part)
        for path in (f"{place}.py", os.path.join(place, "__init__.py")):
            if os.path.isfile(path):
                yield path
