"""Setup of tests: programs, and files that are fetched and checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec

from benchmodels.runtimes.registry import FOR_FILES
from benchwright.artifacts.cache import ArtifactCache
from benchwright.core.artifact import Artifact
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.executors.observer import Observer
from benchwright.kinds.spec.placeholders import Filler
from benchwright.kinds.spec.read.keys import LAUNCH_FOLDERS, PLACEHOLDER
from benchwright.kinds.spec.spec_test import SpecTest, spec_of


def paths_here(test: SpecTest, artifacts: Sequence[Artifact]) -> dict[str, str]:
    """Where those files lie that are here, verified; all together side by side, since one may need the other."""
    if test.model_cache is None or not artifacts:
        return {}
    files = [located(test, artifact) for artifact in artifacts]
    try:
        return {key: str(path) for key, path in _fetched(test, files, offline=True).items()}
    except BenchwrightError:
        pass  # some are missing or wrong; the others can be shown
    found: dict[str, str] = {}
    for file in files:
        with suppress(BenchwrightError):
            found |= {key: str(path) for key, path in _fetched(test, [file], offline=True).items()}
    return found


def known_sums(benchmarks: Sequence[Benchmark]) -> dict[str, str]:
    """By path, of files that the specification gives a checksum for. Found only if their content has it."""
    sums: dict[str, str] = {}
    tests = [test for b in benchmarks if (test := spec_of(b)) is not None]
    groups = {(os.path.dirname(t.path), group): t for t in tests for group in (t.files, t.input_files) if group}
    for (_, group), test in groups.items():
        known = {file.key: file.sha256 or file.md5 for file in group if not is_made_by_test(test, file)}
        paths = paths_here(test, [file for file in group if file.key in known])
        sums |= {path: known[key] or "" for key, path in paths.items()}
    return {path: known for path, known in sums.items() if known}


def is_made_by_test(test: SpecTest, artifact: Artifact) -> bool:
    """Whether a step of the test writes it, so that there is nothing to fetch."""
    return _filled(test, artifact.location).startswith(LAUNCH_FOLDERS)


def located(test: SpecTest, artifact: Artifact) -> Artifact:
    """With its location filled as far as the command line and the file say."""
    return msgspec.structs.replace(artifact, location=_filled(test, artifact.location))


def _filled(test: SpecTest, text: str) -> str:
    return Filler(test.values, {}, (test.string_map,)).text(text) if "{" in text else text


def files_of(test: SpecTest) -> list[Artifact]:
    """The files to fetch, with placeholders in their locations filled."""
    wanted = (*test.files, *test.input_files, *test.goldens, *test.libraries)
    return [located(test, file) for file in wanted if not is_made_by_test(test, file)]


def missing_option(benchmark: Benchmark) -> InvalidInput | None:
    """The error for what only the user can give: a program, or a value for a placeholder in a location."""
    test = spec_of(benchmark)
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
    return None if test.commands else _no_model(benchmark, test)


def _no_model(benchmark: Benchmark, test: SpecTest) -> InvalidInput | None:
    """A test that names only inputs needs a program, or a file that our runtimes load."""
    endings = [os.path.splitext(file.filename)[1].lower() for file in test.files]
    fitting = [ending for ending in endings if ending in FOR_FILES]
    if len(fitting) == 1:
        return None
    kinds = ", ".join(FOR_FILES)
    what = f"no file of {benchmark.name} is" if not fitting else f"several files of {benchmark.name} are"
    text = f"no program was given, and {what} a model that our runtimes load ({kinds})"
    return InvalidInput(text, where=f"{test.path}:{test.line}", remedy="add --program PATH")


def lacking(benchmarks: Sequence[Benchmark]) -> Iterator[tuple[str, str]]:
    """Benchmarks that cannot run yet, and why."""
    known: dict[tuple[str, tuple[Artifact, ...]], list[str]] = {}  # tests of a model share its files
    for benchmark in benchmarks:
        test = spec_of(benchmark)
        assert test is not None
        if (wrong := missing_option(benchmark)) is not None:
            yield benchmark.name, wrong.on_one_line
            continue
        files = (os.path.dirname(test.path), tuple(files_of(test)))
        if files not in known:
            known[files] = _unfetched(test, files[1])
        if missing := known[files]:
            yield benchmark.name, f"{', '.join(missing)} not fetched yet; run without --no-setup"


def unobtainable(benchmarks: Sequence[Benchmark]) -> Iterator[tuple[str, str]]:
    """Benchmarks that lack what cannot be fetched: an option, or a file of this machine. And why."""
    for benchmark in benchmarks:
        test = spec_of(benchmark)
        assert test is not None
        if (wrong := missing_option(benchmark)) is not None:
            yield benchmark.name, wrong.on_one_line
            continue
        near = [file for file in files_of(test) if "://" not in file.location]
        if _is_known(test, near):
            continue
        why = next((why for file in near if (why := _why_not_fetched(test, [file])) is not None), None)
        if why is not None:
            yield benchmark.name, why


def _unfetched(test: SpecTest, files: Sequence[Artifact]) -> list[str]:
    """Names of files that are not here, or that changed."""
    here = paths_here(test, files)
    return [file.filename for file in files if file.key not in here]


def fetch(benchmarks: Sequence[Benchmark], observer: Observer) -> dict[str, str] | None:
    """Fetches missing files. Returns the benchmarks for which that failed, with the reason; None: nothing was missing."""
    failed: dict[str, str] = {}
    tried: dict[tuple[str, tuple[Artifact, ...]], str | None] = {}
    for benchmark in benchmarks:
        test = spec_of(benchmark)
        assert test is not None
        files = (os.path.dirname(test.path), tuple(files_of(test)))
        if missing_option(benchmark) is not None or files in tried or _is_known(test, files[1]):
            continue
        tried[files] = _why_not_fetched(test, files[1], observer)
    for benchmark in benchmarks:
        test = spec_of(benchmark)
        assert test is not None
        if (why := tried.get((os.path.dirname(test.path), tuple(files_of(test))))) is not None:
            failed[benchmark.name] = why
    models = any(not test.commands for b in benchmarks if (test := spec_of(b)) is not None) and bool(tried)
    return failed if failed or models else None  # which runtimes a model's file can run on is read from the file


def _is_known(test: SpecTest, files: Sequence[Artifact]) -> bool:
    """Without reading any of them."""
    if test.model_cache is None or not files:
        return True
    cache, near = _cache(test.model_cache), Path(test.path).parent
    root = Path(test.root_model_dir) if test.root_model_dir else None
    try:
        return all(cache.known(file, near=near, root=root) is not None for file in files)
    except BenchwrightError:
        return False  # fetching says what is wrong


def _why_not_fetched(test: SpecTest, files: Sequence[Artifact], observer: Observer | None = None) -> str | None:
    """Why they cannot be had; without an observer, from this machine only."""
    try:
        _fetched(test, files, observer, offline=observer is None)
    except InvalidInput as error:
        return error.on_one_line
    except BenchwrightError as error:
        return str(error)
    return None


def _fetched(
    test: SpecTest, files: Sequence[Artifact], observer: Observer | None = None, *, offline: bool = False
) -> dict[str, Path]:
    assert test.model_cache is not None
    cache = _cache(test.model_cache, offline=offline or test.offline)
    near, root = Path(test.path).parent, Path(test.root_model_dir) if test.root_model_dir else None
    return cache.fetch_all(files, near=near, root=root, progress=observer, where=f"{test.path}:{test.line}")


@lru_cache(maxsize=4)
def _cache(folder: str, *, offline: bool = False) -> ArtifactCache:
    """It lives as long as the run: what was found through it is not cleaned away meanwhile."""
    return ArtifactCache(Path(folder), offline=offline)
