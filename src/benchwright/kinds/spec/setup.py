"""What tests need before they can run: programs, and files that are fetched and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from benchwright.core.artifact import Artifact
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.core.specification import SpecTest
from benchwright.executors.observer import Observer
from benchwright.kinds.spec.placeholders import Filler
from benchwright.kinds.spec.read.keys import PLACEHOLDER

if TYPE_CHECKING:
    from benchwright.artifacts.cache import ArtifactCache

_OF_THE_LAUNCH = ("{TGTDIR}", "{HOSTDIR}", "{TEMPDIR}")


def cache_of(test: SpecTest) -> ArtifactCache:
    from benchwright.artifacts.cache import ArtifactCache

    assert test.model_cache is not None
    return ArtifactCache(Path(test.model_cache))


def is_made_by_test(test: SpecTest, artifact: Artifact) -> bool:
    """Whether a step of the test writes it, so that there is nothing to fetch."""
    return _filled(test, artifact.location).startswith(_OF_THE_LAUNCH)


def located(test: SpecTest, artifact: Artifact) -> Artifact:
    """With its location filled as far as the command line and the file say."""
    return msgspec.structs.replace(artifact, location=_filled(test, artifact.location))


def _filled(test: SpecTest, text: str) -> str:
    return Filler(test.values, {}, (test.string_map,)).text(text) if "{" in text else text


def files_of(test: SpecTest) -> list[Artifact]:
    """What is to be fetched, locations filled."""
    wanted = (*test.files, *test.input_files, *test.goldens, *test.libraries)
    return [located(test, file) for file in wanted if not is_made_by_test(test, file)]


def missing_option(benchmark: Benchmark) -> InvalidInput | None:
    """What only the user can give: a program, or a value for a placeholder in a location."""
    test = benchmark.spec
    assert test is not None
    for file in files_of(test):
        if unknown := PLACEHOLDER.findall(file.location):
            remedy = f"""give it with --string-map '{{"{unknown[0]}": "…"}}'"""
            return InvalidInput(
                f"the location of file '{file.key}' holds {{{unknown[0]}}}, which stands for nothing",
                where=f"{test.path}:{test.line}",
                remedy=remedy,
            )
    known = {*test.values, *test.programs, *test.string_map}
    for line in test.commands:
        first = PLACEHOLDER.match(line.strip())
        if first is not None and first[1] not in known and first[1].isidentifier() and not first[1].isupper():
            option = "--program PATH" if first[1] == "program" else f"--program {first[1]}=PATH"
            return InvalidInput(
                f"{benchmark.name} runs {first[0]}, and no such program was given", where="--program",
                remedy=f"add {option}",
            )  # fmt: skip
    return None


def lacking(benchmarks: Sequence[Benchmark]) -> Iterator[tuple[str, str]]:
    """Benchmarks that cannot run yet, and why."""
    for benchmark in benchmarks:
        test = benchmark.spec
        assert test is not None
        if (wrong := missing_option(benchmark)) is not None:
            yield benchmark.name, wrong.on_one_line
            continue
        if missing := _unfetched(test):
            yield benchmark.name, f"{', '.join(missing)} not fetched yet; run without --no-setup"


def _unfetched(test: SpecTest) -> list[str]:
    files = files_of(test)
    if not files or test.model_cache is None:
        return [file.filename for file in files]
    cache, near = cache_of(test), Path(test.path).parent
    root = Path(test.root_model_dir) if test.root_model_dir else None
    found = []
    for file in files:
        try:
            if cache.known(file, near=near, root=root) is None:
                found.append(file.filename)
        except BenchwrightError:
            found.append(file.filename)
    return found


def fetch(benchmarks: Sequence[Benchmark], observer: Observer) -> dict[str, str] | None:
    """Fetches what is missing; those for which it failed, with the reason. None: nothing was missing."""
    failed: dict[str, str] = {}
    tried: dict[tuple[Artifact, ...], str | None] = {}
    for benchmark in benchmarks:
        test = benchmark.spec
        assert test is not None
        files = tuple(files_of(test))
        if missing_option(benchmark) is not None or not _unfetched(test):
            continue
        if files not in tried:
            tried[files] = _fetched(test, files, observer)
        if (why := tried[files]) is not None:
            failed[benchmark.name] = why
    return failed if tried else None


def _fetched(test: SpecTest, files: Sequence[Artifact], observer: Observer) -> str | None:
    """Why it failed."""
    near, root = Path(test.path).parent, Path(test.root_model_dir) if test.root_model_dir else None
    try:
        cache_of(test).fetch_all(files, near=near, root=root, progress=observer, where=f"{test.path}:{test.line}")
    except InvalidInput as error:
        return error.on_one_line
    except BenchwrightError as error:
        return str(error)
    return None
