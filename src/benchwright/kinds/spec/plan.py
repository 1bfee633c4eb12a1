"""From a test to the command of a launch: placeholders filled, files found, cores chosen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.files.artifact import Artifact
from benchwright.core.inputs.specification import CONTROL, POWER, SpecSteps, SpecTest
from benchwright.core.job import StepsApart
from benchwright.core.status import Reason
from benchwright.kinds.interpreter import default_python
from benchwright.kinds.spec.cores import cores_in_list, cores_in_mask, present
from benchwright.kinds.spec.gather import reader_for
from benchwright.kinds.spec.models import is_on_runtimes, model_kind
from benchwright.kinds.spec.placeholders import Filler
from benchwright.kinds.spec.profiling import declined
from benchwright.kinds.spec.read.keys import THREADS
from benchwright.kinds.spec.setup import is_made_by_test, located, paths_here
from benchwright.kinds.spec.steps import SHELL, CommandStep, Line, lines_of, script_of
from benchwright.plan.base import JobCommand, PlainPlanner, PlanContext, Planner
from benchwright.plan.file_names import safe_name
from benchwright.plan.placement import launches_of
from benchwright.plan.process_slots import ProcessSlot

SCRIPTS = str(Path(__file__).parent / "faipep")  # {FAIPEPROOT}: our scripts with the arguments of the seed's
_LIBRARIES = "LD_LIBRARY_PATH"
Steps = tuple[list[CommandStep], list[CommandStep], list[CommandStep]]  # before, commands, after
_FETCHED = ("files", "input_files")
# Stand for a launch in the command that all launches between the first and the last share: words that no line holds, made
# of characters that no shell minds.
_ANY_JOB, _ANY_INDEX = "any-job-2917340586613", "7083642915380"


class LaunchFolders(msgspec.Struct, frozen=True):
    """Where a launch keeps its files: `of_launch` is its own, `of_model` is shared by the launches of a model."""

    of_launch: str
    of_model: str

    @property
    def by_name(self) -> dict[str, str]:
        return {"TGTDIR": self.of_launch, "HOSTDIR": self.of_model, "TEMPDIR": f"{self.of_launch}/scratch"}

    @staticmethod
    def below(run: str, test: SpecTest, job: str) -> LaunchFolders:
        side = f".{CONTROL}" if test.side == CONTROL else ""
        return LaunchFolders(f"{run}/files/jobs/{job}", f"{run}/files/models/{safe_name(test.model)}{side}")


class LaunchNumber(msgspec.Struct, frozen=True):
    """Whether a launch is the first or the last of its test."""

    first: bool
    last: bool


def outputs_of(test: SpecTest, folders: LaunchFolders, index: str) -> dict[str, str]:
    """Where a launch writes its outputs, by name. For one with expected values that is, as in 2018, NAME.txt."""
    filler = Filler(test.values, {**folders.by_name, "INDEX": index}, (test.string_map,))
    expected = {golden.key: f"{folders.of_launch}/{golden.key.replace('/', '_')}.txt" for golden in test.goldens}
    return expected | {each.key: filler.text(each.location) for each in test.output_files}


class SpecPlanner(PlainPlanner):
    """Plans tests that run a program."""

    def __init__(self, context: PlanContext) -> None:
        super().__init__(context)
        self._paths: dict[tuple[str, tuple[Artifact, ...]], dict[str, str]] = {}
        self._shared: dict[str, JobCommand] = {}  # by benchmark: the command of any launch but the first and the last

    @cached_property
    def _models(self) -> Planner:
        """Of tests that run on our runtimes."""
        return model_kind().planner(self.context)

    def why_skipped(self, benchmark: Benchmark) -> tuple[Reason, str] | None:
        if is_on_runtimes(benchmark):
            return self._models.why_skipped(benchmark)
        return super().why_skipped(benchmark)

    def why_no_turns(self, benchmark: Benchmark) -> str | None:
        if is_on_runtimes(benchmark):
            return self._models.why_no_turns(benchmark)
        return f"{benchmark.name} is a whole program, which cannot take turns"

    def command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, repeat: int | None) -> JobCommand:
        test = benchmark.spec
        assert test is not None
        if is_on_runtimes(benchmark):
            made = self._models.command(benchmark, slot, job, repeat)
            cores, _ = self._cores(test)
            return msgspec.structs.replace(made, cores=cores or None, cooldown_s=test.cooldown_s, wait_s=test.wait_s)
        launch, index = self._launch(benchmark, job, repeat), str(repeat or 0)
        if launch.first or launch.last:
            return self._filled(benchmark, test, job, index, launch)
        if benchmark.name not in self._shared:
            self._shared[benchmark.name] = self._filled(benchmark, test, _ANY_JOB, _ANY_INDEX, launch)
        return _for_launch(self._shared[benchmark.name], job, index)

    def _filled(self, benchmark: Benchmark, test: SpecTest, job: str, index: str, launch: LaunchNumber) -> JobCommand:
        folders = LaunchFolders.below(self.context.folder, test, job)
        filler = self.filler(test, folders, index)
        before, commands, after = self._steps(benchmark, test, filler, launch)
        outputs = tuple(outputs_of(test, folders, index).values())
        run = _started([*before, *commands, *after], folders)
        made = self._made(filler, folders, outputs)
        cores, _ = self._cores(test)
        reader = reader_for(test)
        return JobCommand(
            run.argv,
            os.path.dirname(test.path),
            {**self._threads(test), **self._libraries(test), **benchmark.env},
            files=run.files,
            folders=made,
            shell=run.shell,
            apart=self._apart(test, filler, folders, (before, commands, after)) if before or after else None,
            echo=test.show_output,
            fetch=tuple(path for path in outputs if path.startswith(self.context.folder)),
            cores=cores or None,
            cooldown_s=test.cooldown_s,
            wait_s=test.wait_s,
            printed="" if self._asks_battery(test) else None if reader is None else reader.wanted,
        )

    def _threads(self, test: SpecTest) -> dict[str, str]:
        """Of a program on a host one thread each, as FAI-PEP sets it, unless the test says otherwise; on a phone as it is."""
        if self._is_phone:
            return {}
        wanted = {name: test.threads.get(name, 1) for name in THREADS}
        return {name: str(count) for name, count in wanted.items() if count > 0}

    @property
    def _is_phone(self) -> bool:
        return (self.context.options.on or "").startswith("adb")

    def notes(self, benchmark: Benchmark) -> tuple[str, ...]:
        test = benchmark.spec
        if test is None:
            return ()
        if test.threads and (self._is_phone or is_on_runtimes(benchmark)):
            where = "a phone" if self._is_phone else "our runtimes, which have --threads"
            return (*self._notes(benchmark, test), f"{' and '.join(test.threads)} not used: on {where}")
        return self._notes(benchmark, test)

    def _notes(self, benchmark: Benchmark, test: SpecTest) -> tuple[str, ...]:
        said = self._cores(test)[1]
        notes: tuple[str, ...] = (f"{test.identifier} {said}",) if said else ()
        if not is_on_runtimes(benchmark) and (why := declined(test)) is not None:
            notes += (why,)
        filler = self.filler(test, LaunchFolders.below(self.context.folder, test, "JOB"), "0")
        unknown = {name: None for line in test.commands for name in filler.unknown(line)}
        absent = [name for name in unknown if name.partition(".")[0] in _FETCHED]
        if absent:
            notes += (f"{_braced(absent)} will be filled once the files are fetched",)
        if other := [name for name in unknown if name not in absent and name != "program"]:
            notes += (
                f"left as written, since nothing is known of it: {_braced(other)}; --string-map can give a value",
            )
        return notes

    def filler(self, test: SpecTest, folders: LaunchFolders, index: str) -> Filler:
        """What the placeholders of a launch stand for."""
        paths = {
            **folders.by_name,
            "FAIPEPROOT": SCRIPTS,
            "BUILDDIR": test.build_folder or os.getcwd(),
            "DEVICEHASH": self.context.machine.hostname,
            "INDEX": index,
        }
        texts: dict[str, str] = {}
        for name, program in test.programs.items():
            (paths if os.path.exists(program) else texts)[name] = program  # one with arguments is several words
        filler = Filler(test.values, paths, (texts, test.string_map))
        for group, artifacts in (("files", test.files), ("input_files", test.input_files)):
            paths |= {f"{group}.{key}": path for key, path in self._found(test, artifacts, filler).items()}
        paths |= {f"output_files.{key}": path for key, path in outputs_of(test, folders, index).items()}
        return filler

    def _found(self, test: SpecTest, artifacts: tuple[Artifact, ...], filler: Filler) -> dict[str, str]:
        """Where files lie, by key; without those that are not fetched yet."""
        made = {file.key: filler.text(file.location) for file in artifacts if is_made_by_test(test, file)}
        fixed = tuple(file for file in artifacts if file.key not in made)
        key = os.path.dirname(test.path), tuple(located(test, file) for file in fixed)
        if key not in self._paths:
            self._paths[key] = paths_here(test, fixed)
        return made | self._paths[key]

    def _launch(self, benchmark: Benchmark, job: str, repeat: int | None) -> LaunchNumber:
        """Which of its launches `job` is, warm-up launches included."""
        settings = self.context.options
        warmup = job.removeprefix(safe_name(benchmark.name)).startswith(".W")
        measured = not warmup and (repeat or 0) + 1 >= launches_of(benchmark, settings)
        return LaunchNumber(first=not repeat and (warmup or settings.warmup_runs == 0), last=measured)

    def _apart(self, test: SpecTest, filler: Filler, folders: LaunchFolders, steps: Steps) -> StepsApart:
        """On a board only the commands run there, as in FAI-PEP; the steps before and after them run here."""
        before, commands, after = steps
        wanted = "".join(step.text() for step in commands)
        send = [filler.text(file.location) for file in test.input_files if is_made_by_test(test, file)]
        send = [path for path in send if path in wanted]
        for path in send:
            wanted = wanted.replace(path, "")
        if folders.of_model in wanted:
            send.append(folders.of_model)
        places = CommandStep(("mkdir", "-p", *folders.by_name.values()))
        return msgspec.structs.replace(
            _started(commands, folders),
            before=lines_of([places, *before]) if before else "",
            after=lines_of([places, *after]) if after else "",
            send=tuple(send) if before else (),
        )

    def _steps(self, benchmark: Benchmark, test: SpecTest, filler: Filler, launch: LaunchNumber) -> Steps:
        """Those before, the commands, those after. The model's own belong to the first launch of its first test, and the
        last of its last."""
        before = [*_of(test.first if launch.first else None, filler), *_of(test.preprocess, filler)]
        after = [*_of(test.postprocess, filler), *_of(test.last if launch.last else None, filler)]
        self._refuse_unsteady(benchmark, test, len(before) + len(after))
        more = "".join(f" {text}" for text in test.arguments)
        commands = [CommandStep(_line(filler, f"{line}{more}")) for line in test.commands]
        if self._asks_battery(test):
            from benchwright.kinds.spec.results.battery import READ as READ_BATTERY

            commands = [CommandStep(READ_BATTERY), *commands, CommandStep(READ_BATTERY)]
        return before, commands, after

    def _refuse_unsteady(self, benchmark: Benchmark, test: SpecTest, steps: int) -> None:
        """InvalidInput where steps would run at the wrong time: before the last launch, or several at once."""
        if test.last is not None and self.context.options.up_to:
            what = f"{test.model} has a postprocess of its own, which needs to know the last launch"
            raise InvalidInput(what, where="--repeat", remedy="give a number of launches")
        if benchmark.placement.jobs > 1 and steps:
            what = f"{benchmark.name} has steps, which cannot run side by side"
            raise InvalidInput(what, where="--jobs", remedy="leave it out")

    def _asks_battery(self, test: SpecTest) -> bool:
        """Whether the energy of a power test is that of the device's battery."""
        return test.metric == POWER and self.context.machine.system == "Android"

    def _made(self, filler: Filler, folders: LaunchFolders, outputs: tuple[str, ...]) -> tuple[str, ...]:
        """Folders that its lines mention."""
        made = {path: None for name, path in folders.by_name.items() if name in filler.used}
        made |= {os.path.dirname(path): None for path in outputs if path.startswith(self.context.folder)}
        return tuple(made)

    def _cores(self, test: SpecTest) -> tuple[tuple[int, ...], str | None]:
        if test.core_list is None and test.core_mask is None:
            return (), None
        wanted = cores_in_list(test.core_list) if test.core_list else cores_in_mask(test.core_mask or "")
        return present(wanted, self.context.usable_cores)

    def _libraries(self, test: SpecTest) -> dict[str, str | None]:
        folders = {os.path.dirname(path): None for path in test.shared_libs}
        for library in paths_here(test, test.libraries).values():
            folders[os.path.dirname(library)] = None
        if not folders:
            return {}
        before = os.environ.get(_LIBRARIES)
        return {_LIBRARIES: ":".join([*folders, *([before] if before else [])])}


def _for_launch(shared: JobCommand, job: str, index: str) -> JobCommand:
    """The command of one launch."""

    def put(text: str) -> str:
        return text.replace(_ANY_JOB, job).replace(_ANY_INDEX, index)

    return msgspec.structs.replace(
        shared,
        argv=tuple(map(put, shared.argv)),
        files={put(path): put(text) for path, text in shared.files.items()},
        folders=tuple(map(put, shared.folders)),
        fetch=tuple(map(put, shared.fetch)),
        apart=None
        if (steps := shared.apart) is None
        else StepsApart(
            argv=tuple(map(put, steps.argv)),
            shell=steps.shell,
            files={put(path): put(text) for path, text in steps.files.items()},
            before=put(steps.before),
            after=put(steps.after),
            send=tuple(map(put, steps.send)),
        ),
    )


def _started(steps: Sequence[CommandStep], folders: LaunchFolders) -> StepsApart:
    """How one process runs all of them."""
    if len(steps) == 1 and steps[0].is_plain:
        return StepsApart(argv=tuple(steps[0].line))
    if len(steps) == 1 and not steps[0].env:
        return StepsApart(argv=(steps[0].text(),), shell=True)
    path = f"{folders.of_launch}/steps.sh"
    return StepsApart(argv=(SHELL, path), files={path: script_of(steps)})


def _braced(names: Sequence[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in sorted(names))


def _of(steps: SpecSteps | None, filler: Filler) -> list[CommandStep]:
    return [CommandStep(_line(filler, line), steps.env) for line in steps.commands] if steps is not None else []


def _line(filler: Filler, line: str) -> Line:
    """A script of ours is started by Python, whether or not its file may be executed."""
    words = filler.command(line)
    if isinstance(words, tuple) and words[0].startswith(f"{SCRIPTS}/") and words[0].endswith(".py"):
        return (default_python(), *words)
    return words
