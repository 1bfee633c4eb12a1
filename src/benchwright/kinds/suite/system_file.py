"""System files: the machines a suite runs on, how they are reached, and runs to make with changed options."""

from __future__ import annotations

import os.path
import re

from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.node.system import OPTION_KEYS, Container, Multirun, MultirunEntry, Node, System
from benchwright.kinds.suite.yaml.checked_values import CheckedValues, parse_capacity, shown
from benchwright.kinds.suite.yaml.nodes import Path, YamlFile, read_yaml

SYSTEM_KEYS = ("arch", "sshkey", "nodes", "gpu", "docker", "dirs", "options")
NODE_KEYS = ("name", "ip", "user", "main", "port", "sshport", "hostname", "local")
GPU_KEYS = ("capacity", "count", "arch")
DOCKER_KEYS = ("executable", "image", "base", "args")
DIRS_KEYS = ("data", "extra", "cache", "venv", "runs")
OPTION_SECTIONS = (*OPTION_KEYS, "dirs")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][\w.]*)\}", re.ASCII)
_SMALLEST_DEVICE_BYTES = 1 << 20
_DEEPEST_REFERENCE = 10
_MOST_GPUS = 10_000  # of one machine
_ARCH = "arch"
_ARCHES = ("cpu", "cuda", "rocm", "xpu", "hpu", "mps", "xla", "ipu", "mtia", "npu", "musa")


def read_system(path: str) -> tuple[System, Multirun]:
    """The file at `path`, whose contents may stand below `system:` or not; InvalidInput points at what is wrong."""
    return _SystemFile(read_yaml(path, kind="system file")).read()


class _SystemFile:
    def __init__(self, file: YamlFile) -> None:
        self._file = file
        rooted = isinstance(file.value, dict) and "system" in file.value
        self._root: tuple[str, ...] = ("system",) if rooted else ()
        self._values = CheckedValues(file, self._filled)

    def read(self) -> tuple[System, Multirun]:
        values = self._values
        if self._root:
            values.mapping((), "a system file", ("system", "multirun"))
        values.mapping(self._at(), "the system", SYSTEM_KEYS if self._root else (*SYSTEM_KEYS, "multirun"))
        values.mapping(self._at("gpu"), "gpu", GPU_KEYS)
        sshkey = values.text(self._at("sshkey"), "sshkey")
        system = System(
            arch=self._arch(self._at(_ARCH)) or self._arch(self._at("gpu", _ARCH)),
            nodes=self._nodes(),
            sshkey=None if sshkey is None else os.path.expanduser(sshkey),
            gpu_count=values.whole(self._at("gpu", "count"), "the number of GPUs", most=_MOST_GPUS),
            gpu_capacity_bytes=self._capacity(self._at("gpu", "capacity")),
            container=self._container(),
            dirs={**self._dirs(self._at("options", "dirs")), **self._dirs(self._at("dirs"))},
            options=self._options(),
        )
        return system, self._multirun()

    def _at(self, *keys: object) -> tuple[object, ...]:
        return (*self._root, *keys)

    def _arch(self, path: Path) -> str | None:
        """One that is nearly a known word is a slip, which would have everything run on the CPU; others may be new."""
        arch = self._values.text(path, "arch")
        if arch is None or arch.lower() in _ARCHES:
            return arch and arch.lower()
        remedy = f"write one of {', '.join(_ARCHES)}" if arch == "gpu" else did_you_mean(arch.lower(), _ARCHES)
        if remedy is not None:
            raise self._file.error(f"'{arch}' is not an arch", path, remedy)
        return arch

    def _nodes(self) -> tuple[Node, ...]:
        found: list[Node] = []
        for number, _ in enumerate(self._values.items(self._at("nodes"), "nodes")):
            node = self._node(self._at("nodes", number))
            for other in found:
                if other.name == node.name:
                    raise self._file.error(
                        f"two nodes are called '{node.name}'", self._at("nodes", number, "name"), "rename one of them"
                    )
                if other.main and node.main:
                    raise self._file.error(
                        f"'{other.name}' and '{node.name}' are both the main node",
                        self._at("nodes", number, "main"),
                        "mark only one",
                    )
            found.append(node)
        return tuple(found)

    def _node(self, path: Path) -> Node:
        values = self._values
        values.mapping(path, "a node", NODE_KEYS)
        if values.get(path) is None:
            raise self._file.error("this node is empty", path, "give it a name and an ip, or remove it")
        port = values.whole((*path, "sshport"), "the ssh port", least=1, most=65535)
        if port is None:
            port = values.whole((*path, "port"), "the ssh port", least=1, most=65535)
        return Node(
            name=values.needed_text((*path, "name"), "the node's name", "give it a `name`"),
            ip=values.needed_text((*path, "ip"), "the node's ip", "give it an `ip`: an address or a host name"),
            user=values.text((*path, "user"), "user"),
            port=22 if port is None else port,
            main=values.flag((*path, "main"), "main"),
            hostname=values.text((*path, "hostname"), "hostname"),
            local=values.flag((*path, "local"), "local"),
        )

    def _container(self) -> Container | None:
        path, values = self._at("docker"), self._values
        if not values.mapping(path, "docker", DOCKER_KEYS):
            return None
        args = enumerate(values.items((*path, "args"), "args"))
        return Container(
            executable=values.text((*path, "executable"), "executable") or "docker",
            image=values.needed_text((*path, "image"), "the container's image", "give it an `image`"),
            base=values.text((*path, "base"), "base"),
            args=tuple(values.text((*path, "args", number), "an argument") or "" for number, _ in args),
        )

    def _capacity(self, path: Path) -> int | None:
        value = self._values.get(path)
        if value is None:
            return None
        try:
            capacity = parse_capacity(value)
        except InvalidInput as error:
            raise self._values.at(path, error) from None
        if capacity is not None and capacity < _SMALLEST_DEVICE_BYTES:
            raise self._file.error(f"{capacity} bytes is too small for a GPU", path, "give the unit: 80GiB")
        return capacity

    def _dirs(self, path: Path) -> dict[str, str]:
        written = self._values.mapping(path, "dirs", DIRS_KEYS)
        found = {key: self._values.text((*path, key), f"the folder '{key}'") for key in written}
        return {key: folder for key, folder in found.items() if folder}

    def _options(self) -> dict[str, object]:
        sections = self._values.mapping(self._at("options"), "options", OPTION_SECTIONS)
        for section in sections:
            if section in OPTION_KEYS:
                self._values.mapping(self._at("options", section), f"options.{section}", OPTION_KEYS[section])
        return {section: dict(value) for section, value in sections.items() if section in OPTION_KEYS and value}

    def _multirun(self) -> Multirun:
        values = self._values
        values.mapping(("multirun",), "multirun", ("runs",))
        runs = []
        for number, _ in enumerate(values.items(("multirun", "runs"), "runs")):
            path = ("multirun", "runs", number)
            values.mapping(path, "a run", ("name", "matrix"))
            matrix = values.mapping((*path, "matrix"), "matrix")
            for option in matrix:
                self._check_option(option, (*path, "matrix", option))
            name = values.get((*path, "name"))
            if not isinstance(name, str) or not name:
                raise self._file.error("the run's name is missing", (*path, "name"), 'write name: "auto.{time}"')
            runs.append(MultirunEntry(name=name, matrix={shown(key): value for key, value in matrix.items()}))
        return Multirun(runs=tuple(runs))

    def _check_option(self, option: object, path: Path) -> None:
        known = [f"{section}.{key}" for section, keys in OPTION_KEYS.items() for key in keys]
        if option not in known:
            remedy = did_you_mean(shown(option), known) or f"use {', '.join(known)}"
            raise self._file.error(f"'{shown(option)}' is not an option", path, remedy, key=True)
        value = self._values.get(path)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, (dict, list)):
                raise self._file.error(f"'{option}' takes a value or a list of values", path)

    def _filled(self, text: str, path: Path, depth: int = 0) -> str:
        """`text` with `${system.a.b}` replaced; the arch stays where the machine itself is to be asked for it."""

        def value(match: re.Match[str]) -> str:
            name = match[1].removeprefix("system.")
            found = self._values.get(self._at(*name.split(".")))
            if found is None and name == _ARCH:
                return f"${{system.{_ARCH}}}"
            if found is None or isinstance(found, (dict, list)) or depth > _DEEPEST_REFERENCE:
                near = did_you_mean(match[1], [f"system.{known}" for known in self._known()])
                what = "refers to itself" if depth > _DEEPEST_REFERENCE else "is not a value of this file"
                raise self._file.error(f"{match[0]} {what}", path, near)
            return self._filled(shown(found), path, depth + 1)

        return _REFERENCE.sub(value, text)

    def _known(self) -> list[str]:
        body = self._values.get(self._root)
        known = []
        for key, value in (body if isinstance(body, dict) else {}).items():
            inner = [f"{key}.{k}" for k in value] if isinstance(value, dict) else [str(key)]
            known += inner
        return known
