"""From a test to the command of a launch: placeholders filled, files found, cores chosen."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from benchwright.core.artifact import Artifact
from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.job import StepsApart
from benchwright.core.machine import ANDROID
from benchwright.core.revision import CONTROL
from benchwright.core.secrets import redact_text
from benchwright.core.status import Reason
from benchwright.kinds.interpreter import default_python
from benchwright.kinds.spec.cores import cores_in_list, cores_in_mask, present
from benchwright.kinds.spec.dialects import dialect_folders, usual_variables
from benchwright.kinds.spec.gather import reader_for
from benchwright.kinds.spec.models import is_on_runtimes, model_kind
from benchwright.kinds.spec.placeholders import Filler
from benchwright.kinds.spec.profile import declined
from benchwright.kinds.spec.results.battery import READ as READ_BATTERY
from benchwright.kinds.spec.setup import is_made_by_test, located, paths_here
from benchwright.kinds.spec.spec_test import POWER, SpecSteps, SpecTest, spec_of
from benchwright.plan.base import JobCommand, PlainPlanner, PlanContext, Planner
from benchwright.plan.file_names import safe_name
from benchwright.plan.placement import launches_of
from benchwright.plan.process_slots import ProcessSlot

# The commands of one launch: one program, or several steps that a shell runs one after another.
#
# Only a shell needs nothing installed on a board, and starts within a millisecond.


Line = str | tuple[str, ...]  # the words of a command, or one text that only a shell understands
SHELL = "/bin/sh"


class CommandStep(msgspec.Struct, frozen=True):
    """One command, with its changes to the environment."""

    line: Line
    env: Mapping[str, str] = {}

    @property
    def is_plain(self) -> bool:
        return isinstance(self.line, tuple) and not self.env

    def text(self) -> str:
        """For a shell."""
        words = shlex.join(self.line) if isinstance(self.line, tuple) else self.line
        if not self.env:
            return words
        variables = shlex.join(["env", *(f"{name}={value}" for name, value in self.env.items())])
        return f"{variables} {words if isinstance(self.line, tuple) else shlex.join([SHELL, '-c', self.line])}"


def script_of(steps: Sequence[CommandStep]) -> str:
    """A file for `sh`. One that holds a secret removes itself: the shell has it open."""
    text = lines_of(steps)
    return text if redact_text(text) == text else f'rm -f -- "$0"\n{text}'


def lines_of(steps: Sequence[CommandStep]) -> str:
    """For `sh -c`. The first step that fails ends it, with its exit code; the last takes the shell's place."""
    lines = ["set -e"]
    for step in steps:
        last = step is steps[-1] and isinstance(step.line, tuple)
        # In parentheses a line is one command, whatever it holds: `a; b || c` of one step must not end the others.
        text = step.text()
        lines.append(f"exec {text}" if last else text if isinstance(step.line, tuple) else f"(\n{text}\n)")
    return "\n".join(lines) + "\n"


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

    def command(self, benchmark: Benchmark, slot: ProcessSlot, job: str, launch: int | None) -> JobCommand:
        test = spec_of(benchmark)
        assert test is not None
        if is_on_runtimes(benchmark):
            made = self._models.command(benchmark, slot, job, launch)
            cores, _ = self._cores(test)
            return msgspec.structs.replace(made, cores=cores or None, cooldown_s=test.cooldown_s, wait_s=test.wait_s)
        ends, index = self._ends(benchmark, job, launch), str(launch or 0)
        if ends.first or ends.last:
            return self._filled(benchmark, test, job, index, ends)
        if benchmark.name not in self._shared:
            self._shared[benchmark.name] = self._filled(benchmark, test, _ANY_JOB, _ANY_INDEX, ends)
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
            {**self._variables(test), **self._libraries(test), **benchmark.env},
            files=run.files,
            folders=made,
            shell=run.shell,
            apart=self._apart(test, filler, folders, (before, commands, after)) if before or after else None,
            echo=test.log_output,
            fetch=tuple(path for path in outputs if path.startswith(self.context.folder)),
            cores=cores or None,
            cooldown_s=test.cooldown_s,
            wait_s=test.wait_s,
            printed="" if self._asks_battery(test) else None if reader is None else reader.wanted,
        )

    def _variables(self, test: SpecTest) -> dict[str, str]:
        """Of a program on a host, as the test or its dialect says; on a phone as it is."""
        if self._is_phone:
            return {}
        usual = {name: value for name, value in usual_variables(test).items() if name not in test.threads}
        return usual | {name: str(count) for name, count in test.threads.items() if count > 0}

    @property
    def _is_phone(self) -> bool:
        return self.context.machine.system == ANDROID

    def notes(self, benchmark: Benchmark) -> tuple[str, ...]:
        test = spec_of(benchmark)
        if test is None:
            return ()
        if test.threads and (self._is_phone or is_on_runtimes(benchmark)):
            where = "a phone" if self._is_phone else "our runtimes, which have --threads"
            return (*self._notes(benchmark, test), f"{' and '.join(test.threads)} not used: on {where}")
        return self._notes(benchmark, test)

    def _notes(self, benchmark: Benchmark, test: SpecTest) -> tuple[str, ...]:
        note = self._cores(test)[1]
        notes: tuple[str, ...] = (f"{test.identifier} {note}",) if note else ()
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
        """The values of a launch's placeholders."""
        paths = {
            **dialect_folders(),
            **folders.by_name,
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
        """Paths of the files fetched so far, by key."""
        made = {file.key: filler.text(file.location) for file in artifacts if is_made_by_test(test, file)}
        fixed = tuple(file for file in artifacts if file.key not in made)
        key = os.path.dirname(test.path), tuple(located(test, file) for file in fixed)
        if key not in self._paths:
            self._paths[key] = paths_here(test, fixed)
        return made | self._paths[key]

    def _ends(self, benchmark: Benchmark, job: str, launch: int | None) -> LaunchNumber:
        """Whether `job` is the first or the last of its launches, warm-up launches included."""
        settings = self.context.options
        warmup = job.removeprefix(safe_name(benchmark.name)).startswith(".W")
        measured = not warmup and (launch or 0) + 1 >= launches_of(benchmark, settings)
        return LaunchNumber(first=not launch and (warmup or settings.warmup_runs == 0), last=measured)

    def _apart(self, test: SpecTest, filler: Filler, folders: LaunchFolders, steps: Steps) -> StepsApart:
        """On a board only the commands run there; the steps before and after them run here."""
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
        """Steps before, the commands, steps after. The model's own belong to the first launch of its first test, and the
        last of its last."""
        before = [*_of(test.first if launch.first else None, filler), *_of(test.preprocess, filler)]
        after = [*_of(test.postprocess, filler), *_of(test.last if launch.last else None, filler)]
        self._refuse_unsteady(benchmark, test, len(before) + len(after))
        more = "".join(f" {text}" for text in test.arguments)
        commands = [CommandStep(_line(filler, f"{line}{more}")) for line in test.commands]
        if self._asks_battery(test):
            commands = [CommandStep(READ_BATTERY), *commands, CommandStep(READ_BATTERY)]
        return before, commands, after

    def _refuse_unsteady(self, benchmark: Benchmark, test: SpecTest, steps: int) -> None:
        """InvalidInput where steps would run at the wrong time: before the last launch, or several at once."""
        if test.last is not None and self.context.options.up_to:
            what = f"{test.model} has its own postprocess, which needs to know the last launch"
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
    """A script of a dialect is started by Python, whether or not its file may be executed."""
    words = filler.command(line)
    ours = tuple(f"{folder}/" for folder in dialect_folders().values())
    if isinstance(words, tuple) and words[0].startswith(ours) and words[0].endswith(".py"):
        return (default_python(), *words)
    return words
