"""System files: the machines a suite runs on, how they are reached, and runs to make with changed options."""

from __future__ import annotations

import os.path
import re
from typing import Any

from benchwright.core.errors import did_you_mean
from benchwright.core.secrets import add_own_names
from benchwright.core.system import OPTION_KEYS, Container, Multirun, MultirunEntry, Node, System
from benchwright.kinds.text_file import Path
from benchwright.kinds.yaml.value_types import (
    ANYTHING,
    CAPACITY,
    PLAIN_FLAG,
    PLAIN_TEXT,
    MapOf,
    as_text,
    check,
    parse_capacity,
    plain_list,
    plain_table,
    value_at,
    whole,
)
from benchwright.kinds.yaml.values import YamlFile, read_yaml

_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}", re.ASCII)
_SMALLEST_DEVICE_BYTES = 1 << 20
_DEEPEST_REFERENCE = 10
_MOST_GPUS = 10_000  # of one machine
_ARCH = "arch"
_ARCHES = ("cpu", "cuda", "rocm", "xpu", "hpu", "mps", "xla", "ipu", "mtia", "npu", "musa")
_PORT = whole(1, 65535)
_DIRS = plain_table("dirs", **dict.fromkeys(("data", "extra", "cache", "venv", "runs"), PLAIN_TEXT))
_OPTIONS = {name: plain_table(f"options.{name}", **dict.fromkeys(keys, ANYTHING)) for name, keys in OPTION_KEYS.items()}
_TEXTS = dict.fromkeys(("name", "ip", "user", "hostname"), PLAIN_TEXT)
_NODE = plain_table(
    "a node", **_TEXTS, main=PLAIN_FLAG, local=PLAIN_FLAG, port=_PORT, sshport=_PORT, via=plain_list(PLAIN_TEXT)
)
_IMAGE = dict.fromkeys(("executable", "image", "base"), PLAIN_TEXT)
_MULTIRUN = plain_table(
    "multirun", runs=plain_list(plain_table("a run", name=ANYTHING, matrix=MapOf(ANYTHING)))
)  # a run's name may hold {placeholders}, which YAML reads as a map
_SYSTEM = plain_table(
    "the system",
    arch=PLAIN_TEXT,
    sshkey=PLAIN_TEXT,
    nodes=plain_list(_NODE),
    gpu=plain_table("gpu", capacity=CAPACITY, count=whole(0, _MOST_GPUS), arch=PLAIN_TEXT),
    docker=plain_table("docker", **_IMAGE, args=plain_list(PLAIN_TEXT)),
    dirs=_DIRS,
    options=plain_table("options", **_OPTIONS, dirs=_DIRS),
    secrets=plain_list(PLAIN_TEXT),
    multirun=ANYTHING,
)
_ROOT = plain_table("a system file", system=ANYTHING, multirun=ANYTHING)


def read_system(path: str) -> tuple[System, Multirun]:
    """The file at `path`, whose contents may stand below `system:` or not; InvalidInput points at what is wrong.

    What it calls secret is, from now on.
    """
    return _SystemFile(read_yaml(path, kind="system file")).read()


class _SystemFile:
    def __init__(self, file: YamlFile) -> None:
        self._file = file
        rooted = isinstance(file.value, dict) and "system" in file.value
        self._root: tuple[str, ...] = ("system",) if rooted else ()

    def read(self) -> tuple[System, Multirun]:
        if self._root:
            check(self._file, _ROOT, "a system file")
        check(self._file, _SYSTEM, "the system", self._root)
        check(self._file, _MULTIRUN, "multirun", ("multirun",))
        sshkey, capacity = self._text(self._at("sshkey")), self._get(self._at("gpu", "capacity"))
        system = System(
            arch=self._arch(self._at(_ARCH)) or self._arch(self._at("gpu", _ARCH)),
            nodes=self._nodes(),
            sshkey=None if sshkey is None else os.path.expanduser(sshkey),
            gpu_count=self._get(self._at("gpu", "count")),
            gpu_capacity_bytes=None if capacity is None else self._capacity(capacity),
            container=self._container(self._at("docker")),
            dirs={**self._dirs(self._at("options", "dirs")), **self._dirs(self._at("dirs"))},
            options={name: dict(body) for name in OPTION_KEYS if (body := self._get(self._at("options", name)))},
            secrets=tuple(map(as_text, self._get(self._at("secrets")) or ())),
        )
        add_own_names(system.secrets)
        return system, self._multirun()

    def _at(self, *keys: object) -> tuple[object, ...]:
        return (*self._root, *keys)

    def _get(self, path: Path) -> Any:
        return value_at(self._file.value, path)

    def _text(self, path: Path) -> str | None:
        """The value there, with references filled in; None if there is none."""
        value = self._get(path)
        return None if value is None else self._filled(as_text(value), path)

    def _needed(self, path: Path, what: str, remedy: str) -> str:
        value = self._text(path)
        if not value:
            raise self._file.error(f"{what} is missing", path, remedy)
        return value

    def _arch(self, path: Path) -> str | None:
        """A near miss of a known word is a typo, after which everything would run on the CPU; other words may be new vendors."""
        arch = self._text(path)
        if arch is None or arch.lower() in _ARCHES:
            return arch and arch.lower()
        remedy = f"write one of {', '.join(_ARCHES)}" if arch == "gpu" else did_you_mean(arch.lower(), _ARCHES)
        if remedy is not None:
            raise self._file.error(f"'{arch}' is not an arch", path, remedy)
        return arch

    def _nodes(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for number in range(len(self._get(self._at("nodes")) or ())):
            path = self._at("nodes", number)
            node = self._node(path)
            for other in found:
                if other.name == node.name:
                    raise self._file.error(f"two nodes are called '{node.name}'", (*path, "name"), "rename one of them")
                if other.main and node.main:
                    both = f"'{other.name}' and '{node.name}' are both the main node"
                    raise self._file.error(both, (*path, "main"), "mark only one")
            found.append(node)
        return tuple(found)

    def _node(self, path: Path) -> Node:
        written = self._get(path)
        if written is None:
            raise self._file.error("this node is empty", path, "give it a name and an ip, or remove it")
        ports = [port for key in ("sshport", "port") if (port := written.get(key)) is not None]
        name = self._needed((*path, "name"), "the node's name", "give it a `name`")
        via = tuple(self._text((*path, "via", n)) or "" for n in range(len(written.get("via") or ())))
        ip = self._text((*path, "ip")) or (name if via else None)
        return Node(
            name=name,
            ip=ip or self._needed((*path, "ip"), "the node's ip", "give it an `ip`: an address or a host name"),
            user=self._text((*path, "user")),
            port=ports[0] if ports else None,
            main=bool(written.get("main")),
            hostname=self._text((*path, "hostname")),
            local=bool(written.get("local")),
            via=via,
        )

    def _container(self, path: Path) -> Container | None:
        written = self._get(path)
        if not written:
            return None
        return Container(
            executable=self._text((*path, "executable")) or "docker",
            image=self._needed((*path, "image"), "the container's image", "give it an `image`"),
            base=self._text((*path, "base")),
            args=tuple(self._text((*path, "args", n)) or "" for n in range(len(written.get("args") or ()))),
        )

    def _capacity(self, value: object) -> int | None:
        capacity = parse_capacity(value)
        if capacity is not None and capacity < _SMALLEST_DEVICE_BYTES:
            what = f"{capacity} bytes is too small for a GPU"
            raise self._file.error(what, self._at("gpu", "capacity"), "give the unit: 80GiB")
        return capacity

    def _dirs(self, path: Path) -> dict[str, str]:
        return {key: folder for key in self._get(path) or () if (folder := self._text((*path, key)))}

    def _multirun(self) -> Multirun:
        runs = []
        for number, run in enumerate(self._get(("multirun", "runs")) or ()):
            path = ("multirun", "runs", number)
            matrix = (run or {}).get("matrix") or {}
            for option in matrix:
                self._check_option(option, (*path, "matrix", option))
            name = (run or {}).get("name")
            if not isinstance(name, str) or not name:
                raise self._file.error("the run's name is missing", (*path, "name"), 'write name: "auto.{time}"')
            runs.append(MultirunEntry(name=name, matrix=dict(matrix)))
        return Multirun(runs=tuple(runs))

    def _check_option(self, option: object, path: Path) -> None:
        known = [f"{section}.{key}" for section, keys in OPTION_KEYS.items() for key in keys]
        if option not in known:
            word = as_text(option)
            remedy = did_you_mean(word, known) or f"use {', '.join(known)}"
            raise self._file.error(f"'{word}' is not an option", path, remedy, key=True)
        value = self._get(path)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, (dict, list)):
                raise self._file.error(f"'{option}' takes a value or a list of values", path)

    def _filled(self, text: str, path: Path, depth: int = 0) -> str:
        """`text` with `${system.a.b}` replaced; the arch stays where the machine itself is to be asked for it."""

        def value(match: re.Match[str]) -> str:
            name = match[1].removeprefix("system.")
            found = self._get(self._at(*name.split(".")))
            if found is None and name == _ARCH:
                return f"${{system.{_ARCH}}}"
            if found is None or isinstance(found, (dict, list)) or depth > _DEEPEST_REFERENCE:
                near = did_you_mean(match[1], [f"system.{known}" for known in self._known()])
                what = "refers to itself" if depth > _DEEPEST_REFERENCE else "is not a value of this file"
                raise self._file.error(f"{match[0]} {what}", path, near)
            return self._filled(as_text(found), path, depth + 1)

        return _REFERENCE.sub(value, text)

    def _known(self) -> list[str]:
        body = self._get(self._root)
        known = []
        for key, value in (body if isinstance(body, dict) else {}).items():
            known += [f"{key}.{k}" for k in value] if isinstance(value, dict) else [as_text(key)]
        return known
