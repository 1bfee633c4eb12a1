"""A model and its tests, read from one file: each shape and each file of a list is one test."""

from __future__ import annotations

import difflib
import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from benchwright.core.artifact import Artifact
from benchwright.core.errors import InvalidInput
from benchwright.kinds.spec.cores import cores_in_list, cores_in_mask
from benchwright.kinds.spec.placeholders import Filler
from benchwright.kinds.spec.read.files import artifact_of, artifacts_in, converter_of, library_of, output_of
from benchwright.kinds.spec.read.keys import LAUNCH_FOLDERS, MODEL, PLACEHOLDER, TEST, THREADS, VARIABLE
from benchwright.kinds.spec.results.goldens import check_tolerance
from benchwright.kinds.spec.results.statistics import check_statistics
from benchwright.kinds.spec.spec_test import ERROR, SpecInput, SpecPower, SpecSteps, SpecTest
from benchwright.kinds.text_file import Path
from benchwright.kinds.yaml.value_types import ListOf, PlacedValues, Table, check
from benchwright.options.table import MOST_LAUNCHES

# One test with several shapes, or lists of files, is several tests.


_LISTS = ("input_files", "output_files", "golden_files")


class Variant(msgspec.Struct, frozen=True):
    """One of the tests that a test stands for: a shape of each input, and one of each list of files."""

    inputs: tuple[SpecInput, ...]
    files: Mapping[str, Mapping[str, Any]]  # input_files, output_files, golden_files


def by_name(tensors: Any) -> dict[str, Any]:
    """Inputs or outputs of a model: a map, or, as in 2018, a list of maps."""
    several = tensors if isinstance(tensors, list) else [tensors or {}]
    return {name: entry for each in several for name, entry in (each or {}).items()}


def variants_of(file: PlacedValues, test: Mapping[str, Any], model: Mapping[str, Any], path: Path) -> list[Variant]:
    """In order. Every list has one item, or as many as the longest."""
    inputs = test.get("inputs") or {}
    shapes = {name: _shapes(file, entry, (*path, "inputs", name)) for name, entry in inputs.items()}
    lists: dict[Path, int] = {(*path, "inputs", name, "shapes"): len(found) for name, found in shapes.items() if found}
    for key in _LISTS:
        for name, entry in (test.get(key) or {}).items():
            if isinstance(entry, list):
                if not entry:
                    raise file.error(f"{name} has no file", (*path, key, name), "name one, or leave it out")
                lists[*path, key, name] = len(entry)
    count = max(lists.values(), default=1)
    for place, length in lists.items():
        if length not in (1, count):
            raise file.error(f"{length} items, where another input has {count}", place, "give as many to each, or one")
    _check_ranks(file, shapes, by_name(model.get("inputs")), path)
    return [_variant(test, inputs, shapes, number) for number in range(count)]


def _variant(test: Mapping[str, Any], inputs: Mapping[str, Any], shapes: Mapping[str, Any], number: int) -> Variant:
    made = []
    for name, entry in inputs.items():
        found = shapes[name]
        if found:
            type_ = _of(entry.get("type") or "float", number)
            made.append(SpecInput(name=name, shape=found[min(number, len(found) - 1)], type=str(type_)))
    files = {key: {name: _of(each, number) for name, each in (test.get(key) or {}).items()} for key in _LISTS}
    return Variant(tuple(made), files)


def _of(value: Any, number: int) -> Any:
    return value[min(number, len(value) - 1)] if isinstance(value, list) and value else value


def _shapes(file: PlacedValues, entry: Any, path: Path) -> list[tuple[int, ...]]:
    """Of one input; a single shape may be written without the outer list. None: a file gives the input."""
    written = (entry or {}).get("shapes")
    if written is None:
        return []
    if not written:
        raise file.error("shapes is empty", (*path, "shapes"), "write [[1, 3, 224, 224]]")
    several = written if isinstance(written[0], list) else [written]
    made = []
    for number, shape in enumerate(several):
        place = (*path, "shapes", number) if isinstance(written[0], list) else (*path, "shapes")
        if not isinstance(shape, list):
            raise file.error("this is not a shape", place, "write [1, 3, 224, 224]")
        made.append(tuple(_dimension(file, size, (*place, at)) for at, size in enumerate(shape)))
    return made


def _dimension(file: PlacedValues, size: Any, path: Path) -> int:
    if size == VARIABLE:
        return -1
    try:
        return int(size)
    except ValueError:  # a placeholder
        raise file.error(f"'{size}' is not a dimension", path, "write a whole number") from None


def _check_ranks(file: PlacedValues, shapes: Mapping[str, Any], of_model: Mapping[str, Any], path: Path) -> None:
    """The model may say what its inputs are like, as the files of 2018 do."""
    for name, found in shapes.items():
        known = [shape for shape in _shapes(file, of_model.get(name), ("model", "inputs", name)) if shape]
        for number, shape in enumerate(found):
            if known and len(shape) != len(known[0]):
                what = f"{name} has {len(shape)} dimensions here, but {len(known[0])} in the model"
                raise file.error(what, (*path, "inputs", name, "shapes", number), "give as many")


USUAL_TIMEOUT_S = 300.0
_NOT_TEXT = ("files", "input_files", "output_files", "golden_files", "preprocess", "postprocess")
_TOLERANCE = "max_abs"  # what a plain number limits
_PROGRAM = "{program}"


class ReadTest(msgspec.Struct, frozen=True):
    """A test, and what it says about how it is run."""

    test: SpecTest
    env: dict[str, str | None]
    timeout_s: float
    launches: int
    notes: tuple[str, ...] = ()
    in_order: bool = False  # the model has steps before its first test or after its last


def tests_of(file: PlacedValues, meta: Mapping[str, Any], framework: str | None) -> list[ReadTest]:
    """The tests of a file in order; InvalidInput points at what is wrong. `meta`: of the list that names the file."""
    check(file, Table("a specification", {}, any_key=True), "the specification")
    for key in ("model", "tests"):
        if not file.value or file.value.get(key) is None:
            raise file.error(f"the specification has no {key}", (), f"add {key}; see docs/reference/specifications.md")
    check(file, MODEL, "model", ("model",))
    check(file, ListOf(TEST, grows=False), "tests", ("tests",))
    model = {**meta, **{k: v for k, v in file.value["model"].items() if v is not None}}
    if not model.get("name"):
        raise file.error("the model has no name", ("model",), 'add "name"', key=True)
    if not file.value["tests"]:
        raise file.error("there is no test", ("tests",), "add one", key=True)
    reader = _Reader(file, model, framework)
    found = [read for number in range(len(file.value["tests"])) for read in reader.expanded(number)]
    return _with_model_steps(found, reader)


def _with_model_steps(found: Sequence[ReadTest], reader: _Reader) -> list[ReadTest]:
    """The model's own steps belong to its first and its last test."""
    first, last = (
        reader.steps(reader.model, "preprocess", ("model",)),
        reader.steps(reader.model, "postprocess", ("model",)),
    )
    made = [msgspec.structs.replace(read, in_order=bool(first or last)) for read in found]
    if first is not None:
        made[0] = _changed(made[0], first=first)
    if last is not None:
        made[-1] = _changed(made[-1], last=last)
    return made


def _changed(read: ReadTest, **fields: Any) -> ReadTest:
    return msgspec.structs.replace(read, test=msgspec.structs.replace(read.test, **fields))


class _Reader:
    """Reads the tests of one file."""

    def __init__(self, file: PlacedValues, model: dict[str, Any], framework: str | None) -> None:
        self.file = file
        self.model = model
        self.framework = framework or _text(model.get("framework")) or _text(model.get("format"))
        self.count = 0  # of expanded tests
        self.files = artifacts_in(file, model.get("files"), ("model", "files"))
        self.values = flat(model)
        self.mentioned = set(PLACEHOLDER.findall(str(file.value)))
        self.notes = self._near_misses(model, MODEL, ("model",))

    def expanded(self, number: int) -> list[ReadTest]:
        test, path = self.file.value["tests"][number], ("tests", number)
        variants = variants_of(self.file, test, self.model, path)
        try:
            return [self._test(test, path, variant) for variant in variants]
        except InvalidInput as error:
            if error.where is not None:
                raise
            raise self.file.error(error.what, path, error.remedy) from None  # of a placeholder

    def _test(self, test: Mapping[str, Any], path: Path, variant: Variant) -> ReadTest:
        number, self.count = self.count, self.count + 1
        values = {**self.values, **flat(test)}
        filler = Filler(values, {}, ({"ID": str(number)},))
        identifier = filler.text(str(test.get("identifier") or "{ID}"))
        values["identifier"] = identifier
        metric = filler.text(str(test.get("metric") or "delay"))
        device = {**_map(self.model.get("platform_args")), **_map(test.get("platform_args"))}
        goldens, outputs = self._outputs(metric, variant, path)
        read = SpecTest(
            path=os.path.abspath(self.file.path),
            line=self.file.place(path).line,
            model=filler.text(str(self.model["name"])),
            identifier=identifier,
            number=number,
            metric=metric,
            format=_text(self.model.get("format")),
            framework=self.framework,
            group=_text(self.model.get("group")),
            category=_text(self.model.get("category")),
            description=_text(self.model.get("description")),
            iterations=self._number(filler, test, "iter", path),
            warmup=self._number(filler, test, "warmup", path) or 0,
            commands=self._commands(test, path),
            arguments=self._arguments(test),
            preprocess=self.steps(test, "preprocess", path),
            postprocess=self.steps(test, "postprocess", path),
            files=self._files_of(test, path),
            input_files=self._artifacts("input_files", variant, path),
            libraries=tuple(
                library_of(self.file, each, ("model", "libraries", at))
                for at, each in enumerate(self.model.get("libraries") or ())
            ),
            inputs=variant.inputs,
            outputs=tuple(by_name(self.model.get("outputs"))),
            output_files=outputs,
            goldens=goldens,
            tolerance=self._tolerance(filler, test, path),
            statistics=self._statistics(test, path),
            observer=_text(test.get("observer") or self.model.get("observer")),
            converter=converter_of(self.file, test.get("converter"), (*path, "converter"))
            or converter_of(self.file, self.model.get("converter"), ("model", "converter")),
            power=_power(test),
            profiler=dict(test.get("profiler") or {}),
            cooldown_s=self._seconds(filler, test, "cooldown", path) or 0.0,
            wait_s=_seconds(device.get("sleep_before_run")) or 0.0,
            core_mask=_filled(filler, device.get("taskset")),
            core_list=_filled(filler, test.get("cpu-list", device.get("cpu-list", self.model.get("cpu-list")))),
            threads={key: self._number(filler, test, key, path) or 0 for key in THREADS if test.get(key) is not None},
            log_output=str(test.get("log_output", self.model.get("log_output", False))).lower() == "true",
            values=values,
        )
        self._check(read, values, path)
        return ReadTest(
            test=read,
            env=self._env(test, device, path),
            timeout_s=self._seconds(filler, test, "timeout", path) or USUAL_TIMEOUT_S,
            launches=self._launches(filler, test, path),
            notes=(*self.notes, *self._near_misses(test, TEST, path)),
        )

    def _commands(self, test: Mapping[str, Any], path: Path) -> tuple[str, ...]:
        given = [key for key in ("commands", "command", "arguments") if _says_lines(test.get(key))]
        if len(given) > 1:
            what = f"{' and '.join(given)} exclude each other"
            raise self.file.error(what, (*path, given[1]), "give one of them", key=True)
        if not given:
            if not test.get("inputs") and not test.get("input_files"):
                what = "the test has no commands, command, arguments or inputs"
                raise self.file.error(what, path, "say what to run, or which inputs to generate")
            return ()
        lines = test[given[0]]
        lines = [lines] if isinstance(lines, str) else lines
        if given[0] == "arguments" and not lines[0].lstrip().startswith(_PROGRAM):
            lines = [f"{_PROGRAM} {lines[0]}"]
        for at, line in enumerate(lines):
            if not line or not line.strip() or "\0" in line:
                place = (*path, given[0], at) if isinstance(test[given[0]], list) else (*path, given[0])
                raise self.file.error("the command is empty", place, "write the command, or leave it out")
        return tuple(lines)

    def _arguments(self, test: Mapping[str, Any]) -> tuple[str, ...]:
        """Appended to the command: the flags of 2018, then `command_args`."""
        flags: dict[str, object] = {}
        for source in (test.get("commands"), self.model.get("commands")):
            if isinstance(source, dict):
                for name, value in (source.get(self.framework or "") or {}).items():
                    flags.setdefault(name, value)
        args = _text(test.get("command_args")) or _text(self.model.get("command_args"))
        lines = " ".join(self._commands(test, ()))
        new = [(name, value) for name, value in flags.items() if f"--{name}" not in lines]
        return (*_flags_of_2018(new), *((args,) if args else ()), *self._output_folder(test, lines))

    def _output_folder(self, test: Mapping[str, Any], lines: str) -> tuple[str, ...]:
        """Where a program writes its outputs as text, if the line does not say."""
        writes = test.get("metric") == ERROR and "--text_output" in lines and "--output_folder" not in lines
        return ("--output_folder {TGTDIR}",) if writes else ()

    def _tolerance(self, filler: Filler, test: Mapping[str, Any], path: Path) -> dict[str, float]:
        value = test.get("tolerance")
        if value is None:
            return {}
        given = value if isinstance(value, dict) else {_TOLERANCE: value}
        check_tolerance(given, where=self.file.path, line=self.file.place((*path, "tolerance")).line)
        try:
            return {name: float(filler.text(str(limit))) for name, limit in given.items()}
        except ValueError:
            raise self.file.error("tolerance is not a number", (*path, "tolerance"), "write a number") from None

    def _statistics(self, test: Mapping[str, Any], path: Path) -> tuple[str, ...]:
        names = tuple(map(str, test.get("statistics") or ()))
        check_statistics(names, where=self.file.path, line=self.file.place((*path, "statistics")).line)
        return names

    def _outputs(self, metric: str, variant: Variant, path: Path) -> tuple[tuple[Artifact, ...], tuple[Any, ...]]:
        """Expected outputs, and files that the program writes. As in 2018, files that an error test only names are expected."""
        goldens = list(self._artifacts("golden_files", variant, path))
        outputs = []
        for key, entry in variant.files["output_files"].items():
            place = (*path, "output_files", key)
            location = entry.get("location") if isinstance(entry, dict) else entry
            if metric == ERROR and location and not any(folder in location for folder in LAUNCH_FOLDERS):
                goldens.append(artifact_of(self.file, key, entry, place))
            else:
                outputs.append(output_of(self.file, key, entry, place))
        return tuple(goldens), tuple(outputs)

    def _artifacts(self, key: str, variant: Variant, path: Path) -> tuple[Artifact, ...]:
        found = variant.files[key].items()
        return tuple(artifact_of(self.file, name, entry, (*path, key, name)) for name, entry in found)

    def steps(self, owner: Mapping[str, Any], key: str, path: Path) -> SpecSteps | None:
        steps = _map(owner.get(key))
        lines = steps.get("commands") or steps.get("command")
        if not lines:
            return None
        env = _variables(self.file, _map(steps.get("platform_args")).get("env"), (*path, key, "platform_args", "env"))
        return SpecSteps(commands=tuple([lines] if isinstance(lines, str) else lines), env=env)

    def _files_of(self, test: Mapping[str, Any], path: Path) -> tuple[Artifact, ...]:
        """The model's, the test's, and those of their steps."""
        found = [*self.files, *artifacts_in(self.file, test.get("files"), (*path, "files"))]
        for owner, place in ((self.model, ("model",)), (test, path)):
            for key in ("preprocess", "postprocess"):
                found += artifacts_in(self.file, _map(owner.get(key)).get("files"), (*place, key, "files"))
        return _by_key(found)

    def _env(self, test: Mapping[str, Any], device: Mapping[str, Any], path: Path) -> dict[str, str | None]:
        sources = (
            (self.model.get("env"), ("model", "env")),
            (device.get("env"), (*path, "platform_args", "env")),
            (test.get("env"), (*path, "env")),
        )
        return {name: value for env, place in sources for name, value in _variables(self.file, env, place).items()}

    def _launches(self, filler: Filler, test: Mapping[str, Any], path: Path) -> int:
        found = self._number(filler, test, "repeat", path) or 1
        if not 1 <= found <= MOST_LAUNCHES:
            place: Path = (*path, "repeat") if "repeat" in test else ("model", "repeat")
            raise self.file.error(f"repeat is {found:,}", place, f"write a number from 1 to {MOST_LAUNCHES:,}")
        return found

    def _number(self, filler: Filler, test: Mapping[str, Any], key: str, path: Path) -> int | None:
        found = self._seconds(filler, test, key, path)
        if found is not None and not found.is_integer():
            raise self.file.error(f"{key} is {found:g}, not a whole number", (*path, key), "write a whole number")
        return None if found is None else int(found)

    def _seconds(self, filler: Filler, test: Mapping[str, Any], key: str, path: Path) -> float | None:
        """A number that may be written as text, or with placeholders; the test's, else the model's."""
        place: Path = (*path, key) if test.get(key) is not None else ("model", key)
        value = test.get(key) if test.get(key) is not None else self.model.get(key)
        if value is None:
            return None
        text = filler.text(str(value))
        try:
            return float(text)
        except ValueError:
            raise self.file.error(f"{key} is '{text}', not a number", place, "write a number") from None

    def _check(self, test: SpecTest, values: Mapping[str, str], path: Path) -> None:
        """Reports errors now that would show when the test runs: placeholders that refer to each other, wrong cores."""
        filler = Filler(values, {}, ())
        try:
            for line in (*test.commands, *test.arguments):
                filler.unknown(line)
            if test.core_mask is not None:
                cores_in_mask(test.core_mask)
            if test.core_list is not None:
                cores_in_list(test.core_list)
        except InvalidInput as error:
            raise self.file.error(error.what, path, error.remedy) from None

    def _near_misses(self, owner: Mapping[str, Any], table: Table, path: Path) -> tuple[str, ...]:
        """Keys that are no keys of ours are placeholders; one that nothing mentions is not used, and may be misspelt."""
        notes = []
        for key in owner:
            if key in table.keys or key in self.mentioned:
                continue
            near = difflib.get_close_matches(str(key), table.keys, n=1, cutoff=0.8)
            line = self.file.place((*path, key), key=True).line
            guess = f"; did you mean '{near[0]}'?" if near else ""
            notes.append(
                f"{self.file.path}:{line}: '{key}' is not used: it is no key, and no placeholder names it{guess}"
            )
        return tuple(notes)


def flat(owner: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Values of placeholders by name: `{name}`, `{platform_args.taskset}`."""
    found: dict[str, str] = {}
    for key, value in owner.items():
        if isinstance(value, dict):
            if above or key not in _NOT_TEXT:
                found |= flat(value, f"{above}{key}.")
        elif value is not None and not isinstance(value, list):
            found[f"{above}{key}"] = ("true" if value else "false") if isinstance(value, bool) else str(value)
    return found


def _says_lines(value: object) -> bool:
    return bool(value) and isinstance(value, str | list)


def _by_key(files: Sequence[Artifact]) -> tuple[Artifact, ...]:
    return tuple({file.key: file for file in files}.values())


def _map(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


def _filled(filler: Filler, value: object) -> str | None:
    return None if value is None or value == "" else filler.text(str(value))


def _seconds(value: object) -> float | None:
    try:
        return None if value is None else float(str(value))
    except ValueError:
        return None


def _power(test: Mapping[str, Any]) -> SpecPower | None:
    power = SpecPower(
        method=_text(test.get("method")),
        collection_time_s=_seconds(test.get("collection_time")),
        voltage=_seconds(test.get("voltage")),
    )
    return None if power == SpecPower() else power


def _variables(file: PlacedValues, value: Any, path: Path) -> dict[str, str]:
    """A map, or `A=1 B=2` as one text."""
    if value is None:
        return {}
    if isinstance(value, dict):
        return flat(value)
    try:
        words = [word.partition("=") for word in shlex.split(value)]
    except ValueError:
        words = [("", "", "")]
    if not all(name and equals for name, equals, _ in words):
        raise file.error(f"'{value}' is not a list of variables", path, 'write {"NAME": "VALUE"}')
    return {name: text for name, _, text in words}


def _flags_of_2018(commands: Sequence[tuple[str, object]]) -> list[str]:
    """`{"run_individual": "true"}` → `--run_individual true`."""
    return [word for name, value in commands for word in (f"--{name}", shlex.quote(_plain(value)))]


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
