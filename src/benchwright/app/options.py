"""The one table of options: what each is called, what it means, and which targets it applies to.

The command line makes its options from it, the Python API its keywords, and `refuse_unrelated` its errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

import msgspec

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.core.model import DEFAULT_RUNTIME, PRECISIONS, ZOO_SCALES

# What a target turned out to be. A script's models are another sort of target than its loop.
COMMAND, TASKS, SUITE, LOOP, MODELS, MODEL_FILE, SPEC = "command", "tasks", "suite", "script", "models", "model", "spec"
ZOO = "zoo"
SORTS = {
    COMMAND: "commands",
    TASKS: "task files",
    SUITE: "suites",
    LOOP: "scripts",
    MODELS: "models in scripts",
    MODEL_FILE: "model files",
    ZOO: "models of zoos",
    SPEC: "specifications",
}
_SCRIPTS = (LOOP, MODELS)
OF_SCRIPTS = frozenset((COMMAND, *_SCRIPTS))  # what a script can turn out to be, or be measured as
_MODELS = (MODELS, MODEL_FILE, ZOO)
_SWEPT = (*_SCRIPTS, ZOO)
_HOOKED = (COMMAND, TASKS, LOOP)

WHAT, HOW, KEEP = "What to measure", "How to measure it", "Results"
OF_MODELS, OF_TASKS, OF_SUITES, OF_SPECS = "Models", "Task files", "Suites", "Specifications"

# flag: True or False · switch: --x/--no-x · count: a whole number · text · choice · list: repeatable ·
# words: repeatable, each a comma list · pairs: repeatable NAME=VALUE, in Python a mapping · optional: text, or nothing
Form = Literal["flag", "switch", "count", "text", "choice", "list", "words", "pairs", "optional"]


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option. `applies`: the sorts of target it is for; empty: all. `common`: among the few that `run --help` shows."""

    name: str  # of the Python keyword
    flags: tuple[str, ...]
    section: str
    help: str
    form: Form = "text"
    metavar: str | None = None
    applies: tuple[str, ...] = ()
    common: bool = False
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    default: str | int | bool | None = None
    aliases: tuple[str, ...] = ()  # understood, not listed
    names_from: str | None = None  # the function whose names stand for {names} in the help; called only to show it
    variable: str | None = None  # the environment variable that sets it
    of_target: bool = True  # changes what is measured or how; False: only where it goes and what is shown

    @property
    def applies_to(self) -> str:
        """`models in scripts and model files`."""
        words = [SORTS[sort] for sort in self.applies]
        return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _option(
    section: str, flags: str, form: Form = "text", metavar: str | None = None, *, help: str, **more: object
) -> Option:
    """`flags` as in "-q --quiet"; the keyword is the last of them, unless `name` says otherwise."""
    names = tuple(flags.split())
    name = more.pop("name", names[-1].removeprefix("--").partition("/")[0].replace("-", "_"))
    fields = {"section": section, "flags": names, "help": help, "form": form, "metavar": metavar, "name": name, **more}
    return msgspec.convert(fields, Option)


def _spec(flag: str, form: Form = "text", metavar: str | None = None, *, help: str, **more: object) -> Option:
    """An option of specifications; FAI-PEP's spelling, with underscores, is understood too."""
    aliases = (flag.replace("-", "_").replace("__", "--", 1),) if "-" in flag.removeprefix("--") else ()
    return _option(OF_SPECS, flag, form, metavar, help=help, applies=(SPEC,), aliases=aliases, **more)


def _rows() -> Iterable[Option]:
    yield from _what()
    yield from _how()
    yield from _of_models()
    yield from _of_tasks()
    yield from _of_suites()
    yield from _of_specs()
    yield from _results()


# fmt: off
def _what() -> Iterable[Option]:
    yield _option(WHAT, "-c --command", "list", "COMMAND", name="commands", common=True,
        help="A command as one string. Repeatable; several are interleaved.")
    yield _option(WHAT, "--shell", "flag", applies=(COMMAND, TASKS),
        help="Run commands with /bin/sh, for pipes and &&. Tasks that need one run in one anyway.")
    yield _option(WHAT, "--metric", "list", "NAME=PATTERN", name="metrics", applies=(COMMAND, TASKS, SUITE, LOOP, SPEC), common=True,
        help="A number to read from the output. PATTERN is a regular expression with one group, json:KEY or kv:KEY. NAME[unit,higher|lower,method]=… says more. Repeatable.")
    yield _option(WHAT, "--name", metavar="NAME",
        help="Name of the benchmark, if there is only one.")
    yield _option(WHAT, "--format", metavar="KIND", applies=(TASKS, SUITE, LOOP, MODELS, MODEL_FILE, ZOO, SPEC),
        help="Kind of target: suite, tasks, script, model, zoo or spec.")
    yield _option(WHAT, "-m --module", "list", "NAME", name="modules",
        help="A module or package instead of a script's file, as python -m takes it. Repeatable.")
    yield _option(WHAT, "--as", "choice", choices=("loop", "training", "models", "command"), name="as_", applies=_SCRIPTS,
        help="How to measure a script.")
    yield _option(WHAT, "--script-args", metavar="ARGS", applies=_SWEPT,
        help="Arguments for scripts, as one string; shorter: train.py -- --epochs 1. Separated by blanks, or by commas before options. Of a zoo: the parameters of its models, such as --batch_size 8.")
    yield _option(WHAT, "--python", metavar="PATH", applies=(*_SWEPT, MODEL_FILE),
        help="Interpreter for scripts and models.  [default: python on the PATH]")
    yield _option(WHAT, "--cwd", metavar="DIR", applies=(COMMAND, *_SWEPT, MODEL_FILE),
        help="Folder to run in.  [default: this one]")
    yield _option(WHAT, "--env", "pairs", "NAME=VALUE",
        help="Set a variable for the program; NAME alone removes it. Repeatable.")
    yield _option(WHAT, "--search-dir", "list", "DIR", name="search_dirs", aliases=("-s",), applies=_SWEPT,
        help="Folder to look up scripts in. Repeatable.")
    yield _option(WHAT, "--all", "flag", name="all_scripts", applies=_SWEPT,
        help="Every script of a folder, however many: of those named, else of the --search-dir folders, else of this one.")
    yield _option(WHAT, "--shard", metavar="I/N", applies=_SWEPT,
        help="Of the scripts of folders and the models of zoos only every N-th, from the I-th on, such as 3/8.")
    yield _option(WHAT, "--shuffle", "flag", applies=_SWEPT,
        help="Run the scripts of folders and the models of zoos in an order chosen by --seed.")
    yield _option(WHAT, "--param", "pairs", "NAME=V,V", name="params", applies=(COMMAND, *_SWEPT), common=True,
        help="Measure once for each value. It fills {NAME} in a command, --NAME of a script, a size of a zoo's model; env:NAME is a variable. Repeatable.")
    yield _option(WHAT, "--sweep", "choice", choices=("grid", "zip"), default="grid", applies=(COMMAND, *_SWEPT),
        help="Combine several --param: every combination, or value by value.  [default: grid]")


def _how() -> Iterable[Option]:
    yield _option(HOW, "--repeat", metavar="N", default="1", common=True,
        help="Launches of each benchmark, or auto. From 6 on there is a confidence interval; auto launches until it is within ± 2 % (at most 100 launches or 5 minutes), 1% until it is that narrow, 60s for a minute. verdict launches alternating commands until it is clear which is faster or that they are the same (at most 10 minutes; verdict:30m: 30).  [default: 1]")
    yield _option(HOW, "--warmup-runs", "count", "N", least=0, default=0, common=True,
        help="Extra launches first, recorded but not counted.")
    yield _option(HOW, "--prepare", "list", "COMMAND", applies=_HOOKED,
        help="Run this before each launch, untimed. Give one for all benchmarks, or one for each.")
    yield _option(HOW, "--setup", metavar="COMMAND", applies=_HOOKED,
        help="Run this once before the first launch. With {NAME} of --param: once for each value.")
    yield _option(HOW, "--cleanup", metavar="COMMAND", applies=_HOOKED,
        help="Run this once after the last launch, even if the run is interrupted.")
    yield _option(HOW, "-i --ignore-failure", "flag", applies=_HOOKED,
        help="Count launches with an exit code other than 0, and say so.")
    yield _option(HOW, "--interleave/--no-interleave", "switch",
        help="Alternate the benchmarks' launches.  [default: commands and models, if several]")
    yield _option(HOW, "--turns", metavar="TIME",
        help="Run interleaved benchmarks at the same time, in turns this long; for machines whose speed drifts.")
    yield _option(HOW, "--stop", metavar="RULE", common=True,
        help="When to stop a loop: 100 (steps), 30s or 1%. A percentage is the precision of the median. never: not before its own end.")
    yield _option(HOW, "--stop-grace", metavar="TIME", applies=_SCRIPTS,
        help="How long a training script may go on after its training was stopped early, to evaluate, save and clean up; then it is killed.  [default: 30s]")
    yield _option(HOW, "--warmup", metavar="RULE",
        help="Warm-up of a loop: auto, 20 (steps) or 5s.  [default: auto]")
    yield _option(HOW, "--loop", metavar="NAME", applies=(COMMAND, TASKS, SUITE, LOOP),
        help="Loop that counts.  [default: the first called train]")
    yield _option(HOW, "--timeout", metavar="TIME", common=True,
        help="Limit for each launch, such as 90s or 10m. Checking a model's outputs has as long again.")
    yield _option(HOW, "--max-memory", metavar="SIZE",
        help="Limit for the memory of each launch, such as 8GiB: all its processes together are killed beyond it.")
    yield _option(HOW, "--lock-clocks", "optional", "[=MHZ]", default="auto",
        help="Lock the clocks of this machine's NVIDIA GPUs for the run, by default at 70 % of the highest, and unlock them whatever happens. Usually needs root.")
    yield _option(HOW, "--cores", metavar="LIST", common=True,
        help="Pin to these cores, such as 0,2-3.")
    yield _option(HOW, "--on", metavar="NAME[:ARG]", common=True,
        help="Where to run: local, ssh:HOST, adb:SERIAL or a plug-in. In full ssh:[USER@]HOST[:PORT]; ssh alone means the nodes of --system, adb alone the only Android device. Known: {names}.  [default: local]",
        names_from="benchwright.executors.registry:EXECUTORS.names")
    yield _option(HOW, "--platform", metavar="NAME",
        help="Run on every device of this platform: android, or host (also linux, mac). Each gets a run of its own. What follows a slash is kept as a label, as in android/clang.")
    yield _option(HOW, "--devices", "words", "NAME,NAME", name="device_names",
        help="Only these devices, by name or hash, nodes of $BENCHWRIGHT_SYSTEM among them; see benchwright devices.")
    yield _option(HOW, "--excluded-devices", "words", "NAME,NAME", aliases=("--excluded_devices",),
        help="All but these devices, by name or hash.")
    yield _option(HOW, "--remote-dir", metavar="DIR",
        help="Folder for files sent to machines that do not see the base folder.  [default: ~/.cache/benchwright/node there]")
    yield _option(HOW, "--jobs", "count", "N", least=1,
        help="Processes that each launch measures side by side.")
    yield _option(HOW, "--sample-interval", metavar="TIME", default="0.5s",
        help="How often to sample memory and devices.  [default: 0.5s]")
    yield _option(HOW, "--seed", "count", "N", default=0,
        help="Seed for the order of interleaved launches and for scripts' random numbers.")
    yield _option(HOW, "--validations", "words", "LAYERS",
        help="More checks: usage, planning, version, plausibility, or all.")


def _of_models() -> Iterable[Option]:
    yield _option(OF_MODELS, "--runtime", "words", "NAME,NAME", name="runtimes", aliases=("--backend",), applies=(*_MODELS, SPEC), common=True,
        names_from="benchmodels.runtimes.registry:known_runtimes",
        help=f"Runtimes, such as {DEFAULT_RUNTIME},onnxruntime. Known: {{names}}.  [default: {DEFAULT_RUNTIME}]")
    yield _option(OF_MODELS, "--device", "words", "NAME,NAME", name="devices", applies=_MODELS, common=True,
        help="Devices: cpu, cuda or cuda:1.  [default: where the script calls the model; of zoos and files cpu]")
    yield _option(OF_MODELS, "--precision", "words", "NAME,NAME", name="precisions", applies=_MODELS, common=True,
        help=f"Precisions: {', '.join(PRECISIONS)}.  [default: fp32]")
    yield _option(OF_MODELS, "--scale", "choice", choices=ZOO_SCALES, default=ZOO_SCALES[0], applies=(ZOO,),
        help="Size of a zoo's models: tiny (few layers, small inputs, at most 30 M parameters), small, or full (as published).  [default: tiny]")
    yield _option(OF_MODELS, "--threads", "count", "N", least=1, applies=_MODELS,
        help="Threads of the runtime.  [default: one per core]")
    yield _option(OF_MODELS, "--streams", "count", "N", least=1, most=256, default=1, applies=_MODELS,
        help="Also measure the throughput of N concurrent callers.")
    yield _option(OF_MODELS, "--items", "count", "N", least=1, applies=_MODELS,
        help="Items in one call, for items/s.  [default: the batch size, if known; else calls/s]")
    yield _option(OF_MODELS, "--max-depth", "count", "N", least=0, default=0, applies=(MODELS,),
        help="Treat sub-modules down to this depth as models too.")
    yield _option(OF_MODELS, "--weights", "flag", applies=(MODELS,),
        help="Make the values of weights part of a model's identity.")
    yield _option(OF_MODELS, "--profile", "flag", applies=_MODELS,
        help="Also time each operator, in a separate launch.")
    yield _option(OF_MODELS, "--cold", "flag", applies=_MODELS,
        help="Start each process afresh. By default, models of a run are measured in processes forked from one that has imported torch.")
    yield _option(OF_MODELS, "--overlap", "flag", applies=_MODELS,
        help="Build and check other models of a zoo while one is on the GPU, on the other half of at least 8 cores; they stand still while it is timed.")
    yield _option(OF_MODELS, "--shape", "pairs", "INPUT=1x3x224x224", name="shapes", applies=(MODEL_FILE,),
        help="Shape of a model file's input. Repeatable.")
    yield _option(OF_MODELS, "--trust", "flag", applies=(MODEL_FILE,),
        help="Load model files that can run code of their own, such as pickles in a .pt2.")
    yield _option(OF_MODELS, "--find-timeout", metavar="TIME", default="10m", applies=(MODELS,),
        help="Limit for the search of a script for its models; those found until then count.  [default: 10m]")
    yield _option(OF_MODELS, "--rebuild", "choice", choices=("if_needed", "always", "never"), default="if_needed", applies=_MODELS,
        help="When to look for, export and compile models again.  [default: if_needed]")
    yield _option(OF_MODELS, "--build-jobs", "count", "N", least=1, applies=_MODELS,
        help="Builds at a time, while nothing is measured.  [default: one for every four cores]")
    yield _option(OF_MODELS, "--lean-cache", "flag", applies=_MODELS,
        help="Remove each build once it was measured; what is known about it is kept.")
    yield _option(OF_MODELS, "--onnx-opset", "count", "N", least=7, most=30, applies=_MODELS,
        help="Operator set of ONNX to export models to.  [default: the exporter's choice]")
    yield _option(OF_MODELS, "--sequence-file", metavar="FILE.py", applies=_MODELS,
        help="Build sequence: a Python file whose SEQUENCE lists functions that change a model before or after its export to ONNX.")
    yield _option(OF_MODELS, "--build-only", "flag", applies=_MODELS,
        help="Build models for the runtimes and measure nothing; later runs use the builds.  [default runtime: onnxruntime]")
    yield _option(OF_MODELS, "--export-only", "flag", applies=_MODELS,
        help="Export models to ONNX and stop there; the report names the files.")
    yield _option(OF_MODELS, "--build-timeout", metavar="TIME", default="10m", applies=_MODELS,
        help="Limit for each step of a build, and for the check of a model's outputs.  [default: 10m]")


def _of_tasks() -> Iterable[Option]:
    yield _option(OF_TASKS, "--task", "list", "NAME", name="tasks", aliases=("--task-name",), applies=(TASKS, SUITE, SPEC, ZOO), common=True,
        help="Only this task, entry or test. Of a zoo: models for this task, such as vision. Repeatable.")
    yield _option(OF_TASKS, "--framework", metavar="NAME", applies=(TASKS, SPEC),
        help="Of task files: prefix for the keys of the result. Of specifications: the framework, which chooses flags and observer.")
    for flag, metavar, help in (
        ("--metrics-suffix", "NAME", "Suffix for the keys of the result."),
        ("--kvstore", "X", "Rewrites --kvstore X."),
        ("--dtype", "X", "Rewrites --dtype X."),
        ("--metrics-policy", "NAME", "Read the output with the patterns of this metrics_… section."),
        ("--command-to-execute", "COMMAND", "Command for --metrics-policy."),
        ("--data-set", "NAME", "Name of the data set, for --metrics-policy."),
        ("--metrics-template", "FILE", "Task file that holds the policy."),
    ):
        yield _option(OF_TASKS, flag, metavar=metavar, applies=(TASKS,), help=help)
    yield _option(OF_TASKS, "--num-gpus", "count", "N", applies=(TASKS,),
        help="Number of GPUs; rewrites --gpus N.")
    yield _option(OF_TASKS, "--epochs", "count", "N", applies=(TASKS,),
        help="Rewrites --epochs N.")
    yield _option(OF_TASKS, "--set-flag", "pairs", "FLAG=VALUE", name="set_flags", applies=(TASKS,),
        help="Rewrites or adds any other flag. Repeatable.")
    yield _option(OF_TASKS, "--remove-flag", "list", "FLAG", name="remove_flags", applies=(TASKS,),
        help="Removes a flag. Repeatable.")


def _of_suites() -> Iterable[Option]:
    yield _option(OF_SUITES, "--config", "list", "SUITE", name="configs", aliases=("--benchmark-file", "--benchmark_file"),
        help="A suite, as if named as a target.  [default: $BENCHWRIGHT_CONFIG, else $MILABENCH_CONFIG]")
    yield _option(OF_SUITES, "--system", metavar="FILE", applies=(SUITE,),
        help="System file: the machines to run on.  [default: $BENCHWRIGHT_SYSTEM, else $MILABENCH_SYSTEM]")
    yield _option(OF_SUITES, "--select", "words", "LIST", applies=(SUITE, *_SWEPT), common=True,
        help="Only these names, groups or tags. Of a folder of scripts or a zoo: labels as key=value. Comma-separated.")
    yield _option(OF_SUITES, "--exclude", "words", "LIST", applies=(SUITE, ZOO),
        help="All but these names, groups or tags. Of a zoo: labels too.")
    yield _option(OF_SUITES, "--override", "list", "PATH=VALUE", name="overrides", applies=(SUITE,),
        help="Change a value, such as resnet50.argv.--epochs=1 or '*.max_duration=60'. Repeatable.")
    yield _option(OF_SUITES, "--use-current-env", "flag", aliases=("--use_current_env",), applies=(SUITE,),
        help="Use the current Python instead of installed environments.")
    yield _option(OF_SUITES, "--no-setup", "flag", applies=(SUITE, SPEC), of_target=False,
        help="Do not install, prepare or fetch what is missing; say how to instead.")
    yield _option(OF_SUITES, "--size", metavar="HOW", applies=(SUITE,),
        help="Batch sizes: auto (fit the device), optimized, default, a number, or search (find the largest that fits).")
    yield _option(OF_SUITES, "--capacity", metavar="SIZE", applies=(SUITE,),
        help="Device memory to size for.  [default: the device's]")
    yield _option(OF_SUITES, "--scaling", metavar="FILE", applies=(SUITE,),
        help="Known memory use by batch size, for --size auto.")
    yield _option(OF_SUITES, "--save-scaling", metavar="FILE", applies=(SUITE,),
        help="Add this run's memory use by batch size to that file.")


def _of_specs() -> Iterable[Option]:
    yield _spec("--program", "list", "[NAME=]PATH", name="programs",
        help="Program for {program}; with a NAME, for {NAME}. Repeatable.")
    yield _spec("--info", metavar="JSON",
        help="What is measured: treatment, and control to alternate and compare it with, each with program, commit and commit_time. Text or a file.")
    yield _spec("--string-map", metavar="JSON",
        help="Values for placeholders, such as '{\"IMAGENET_DIR\": \"/data\"}'. Text or a file.")
    yield _spec("--shared-libs", "words", "FILE,FILE",
        help="Shared libraries the programs load.")
    yield _spec("--root-model-dir", metavar="DIR",
        help="Folder for locations that begin with //.")
    yield _spec("--model-cache", metavar="DIR",
        help="Folder for downloaded files.  [default: artifacts in the base folder]")
    yield _spec("--force-model-cache", "flag",
        help="Allow a --model-cache inside a git checkout.")
    yield _spec("--offline", "flag", variable="BENCHWRIGHT_OFFLINE",
        help="Fetch nothing; use only files that are on this machine.  [default: $BENCHWRIGHT_OFFLINE]")
    yield _spec("--run-type", "choice", choices=("benchmark", "verify", "regress"),
        help="Label that says why it is measured.  [default: benchmark]")
    yield _spec("--regressed-types", metavar="JSON",
        help="With --run-type regress: types of records to mark as regressed, such as '[\"NET\"]'.")
    yield _spec("--screen-reporter", "flag", of_target=False,
        help="Accepted for FAI-PEP's sake: the report is always shown.")
    yield _spec("--android-dir", metavar="DIR",
        help="Folder on Android devices.  [default: /data/local/tmp/]")


def _results() -> Iterable[Option]:
    yield _option(KEEP, "--label", "pairs", "KEY=VALUE", name="labels", common=True,
        help="Label to keep with the results. Repeatable.")
    yield _option(KEEP, "--tag", "list", "TAG", name="tags",
        help="Word to find the run by. Repeatable.")
    yield _option(KEEP, "--run-name", metavar="NAME", aliases=("--run_name",), common=True,
        help="Name of the run; {time} stands for the time.")
    yield _option(KEEP, "--keep-env", "list", "NAME",
        help="Record this environment variable too; globs such as 'MY_*' work. Repeatable.")
    yield _option(KEEP, "--share", "flag", variable="BENCHWRIGHT_SHARE",
        help="Let others read the run's files, as far as the umask allows.  [default: $BENCHWRIGHT_SHARE, else only you]")
    yield _option(KEEP, "--discard-logs", "flag",
        help="Delete a program's log if it succeeded.")
    yield _option(KEEP, "--base", metavar="DIR", aliases=("--cache-dir", "-d"), common=True, of_target=False,
        help="Folder for benchwright's files, also --cache-dir. It has runs, builds and labels.  [default: $BENCHWRIGHT_BASE, else your data folder]")
    yield _option(KEEP, "--resume", "optional", "[=RUN]", default="newest", common=True, of_target=False,
        help="Finish an interrupted run. Finished work is skipped.  [default: the newest run of the same target]")
    yield _option(KEEP, "--anyway", "flag", of_target=False,
        help="With --resume: continue although code, environment or packages changed, and mark the results.")
    yield _option(KEEP, "--store", metavar="URL", of_target=False,
        help="Store to put the run into.  [default: $BENCHWRIGHT_STORE, else store.db in the base folder]")
    yield _option(KEEP, "--no-store", "flag", of_target=False,
        help="Do not put the run into the store.")
    yield _option(KEEP, "--local-reporter", metavar="DIR", aliases=("--local_reporter",), of_target=False,
        help="Also write the results into this folder, in FAI-PEP's layout.")
    yield _option(KEEP, "--remote-reporter", metavar="URL|CATEGORY", aliases=("--remote_reporter",), of_target=False,
        help="Also send the results there, in FAI-PEP's form. What cannot be sent waits in the base folder for the next time.")
    yield _option(KEEP, "--remote-access-token", metavar="TOKEN", aliases=("--remote_access_token",), of_target=False, variable="BENCHWRIGHT_REMOTE_TOKEN",
        help="Token for --remote-reporter, or @FILE that holds it. Others can see a command line: better set $BENCHWRIGHT_REMOTE_TOKEN.")
    yield _option(KEEP, "--show-output", "flag", common=True, of_target=False,
        help="Show what the programs print, on stderr.")
    yield _option(KEEP, "--json", "flag", name="as_json", common=True, of_target=False,
        help="Print the results as JSON.")
    yield _option(KEEP, "--dash", "choice", choices=("short", "long", "no"), default="long", of_target=False,
        help="Progress: long (a line per process), short (one line) or no.  [default: long]")
    yield _option(KEEP, "-q --quiet", "flag", common=True, of_target=False,
        help="No progress.")
    yield _option(KEEP, "-v --verbose", "flag", of_target=False,
        help="More progress.")
# fmt: on


OPTIONS: dict[str, Option] = {option.name: option for option in _rows()}


def refuse_unrelated(given: Collection[str], benchmarks: Iterable[Benchmark]) -> None:
    """InvalidInput for an option that was given and applies to none of the benchmarks."""
    from benchwright.kinds.registry import kind_of

    found = {sort for benchmark in benchmarks for sort in kind_of(benchmark).option_sorts(benchmark)}
    plugins = found - SORTS.keys()
    taken = {*found, COMMAND} if plugins else found  # a kind from elsewhere has the defaults of a command
    for option in (OPTIONS[name] for name in OPTIONS if name in given):
        if plugins and option.name == "format":
            continue
        if option.applies and taken and taken.isdisjoint(option.applies):
            here = " and ".join(SORTS.get(sort, sort) for sort in sorted(found))
            raise InvalidInput(
                f"applies to {option.applies_to}, not to {here}", where=option.flags[-1], remedy="leave it out"
            )
