"""The one table of options: each field of `Options` is an option, with its type, its flags, its help and what it applies to.

The command line makes its options from it, the Python API its keywords, and `refuse_unrelated` its errors. `Options` is made once
and handed on whole. This module does without postponed annotations: reading a hundred of them again would cost milliseconds.
"""

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from benchwright.core.benchmark import Benchmark
from benchwright.core.decision import Decision
from benchwright.core.errors import InvalidInput
from benchwright.core.model import DEFAULT_RUNTIME, ZOO_SCALES
from benchwright.core.quantities import parse_duration
from benchwright.core.revision import RevisionInfo
from benchwright.core.stop_rule import StopRule, Warmup, parse_repeat, parse_stop_rule, parse_warmup
from benchwright.core.system import SuitePaths
from benchwright.options import values

# What a target turned out to be. A script's models are another sort of target than its loop.
COMMAND, TASKS, SUITE, LOOP, MODELS, MODEL_FILE, SPEC = "command", "tasks", "suite", "script", "models", "model", "spec"
ZOO, ENDPOINT = "zoo", "endpoint"
SORTS = {
    COMMAND: "commands",
    TASKS: "task files",
    SUITE: "suites",
    LOOP: "scripts",
    MODELS: "models in scripts",
    MODEL_FILE: "model files",
    ZOO: "models of zoos",
    SPEC: "specifications",
    ENDPOINT: "endpoints",
}
_SCRIPTS = (LOOP, MODELS)
OF_SCRIPTS = frozenset((COMMAND, *_SCRIPTS))  # what a script can turn out to be, or be measured as
_MODELS = (MODELS, MODEL_FILE, ZOO)
_SWEPT = (*_SCRIPTS, ZOO)
_HOOKED = (COMMAND, TASKS, LOOP)

WHAT, HOW, KEEP = "What to measure", "How to measure it", "Results"
OF_MODELS, OF_TASKS, OF_SUITES, OF_SPECS = "Models", "Task files", "Suites", "Specifications"
OF_ENDPOINTS = "Endpoints"
MOST_LAUNCHES = 1_000_000  # of a run; a plan with more is a mistake, or damaged
MOST_OF_ONE = 100_000  # launches of one benchmark; more would take all memory to plan

# flag: True or False · switch: --x/--no-x · count: a whole number · text · choice · list: repeatable ·
# words: repeatable, each a comma list · pairs: repeatable NAME=VALUE, in Python a mapping · optional: text, or nothing
Form = Literal["flag", "switch", "count", "text", "choice", "list", "words", "pairs", "optional"]


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option. `applies`: the sorts of target it is for; empty: all. `common`: among the few that `run --help` shows."""

    flags: tuple[str, ...]
    section: str
    help: str
    form: Form = "text"
    metavar: str | None = None
    parse: Callable[[Any], Any] | None = None  # from what is written to the value of the field
    applies: tuple[str, ...] = ()
    common: bool = False
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    bare: str | None = None  # of the form "optional": what the flag alone means
    aliases: tuple[str, ...] = ()  # understood, not listed
    names_from: str | None = None  # the function whose names stand for {names} in the help; called only to show it
    variable: str | None = None  # the environment variable that sets it
    of_target: bool = True  # changes what is measured or how; False: only where it goes and what is shown
    kept: bool = False  # with the run, which is resumed with the same value
    of_model: bool = False  # a field of every `Model`, of the same name
    held: bool = False  # also a keyword of `benchmark_model`, for a model that the caller holds
    not_in: str = ""  # commands with the options of `run` that lack it: there it is fixed, or means something else
    also_in: str = ""  # other commands that take it
    measuring: bool = False  # says how to measure, which means nothing to a run that only builds
    leads: Literal["", "words", "file"] = (
        ""  # words that may be paths, or one path: to the files of each side of an A/B
    )
    shown: str = ""  # in reports, if it was given: `LABEL: TEXT`, where {} is its value
    name: str = ""  # of its field
    default: Any = None  # of its field

    @property
    def applies_to(self) -> str:
        """`models in scripts and model files`."""
        words = [SORTS[sort] for sort in self.applies]
        return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _row(
    section: str, flags: str, form: Form = "text", metavar: str | None = None, *, help: str, **more: Any
) -> Option:
    """`flags` as in "-q --quiet"."""
    return Option(section=section, flags=tuple(flags.split()), help=help, form=form, metavar=metavar, **more)


# fmt: off
class Options(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The options of a run: what is measured, and how. Durations are in seconds, sizes in bytes."""

    targets: tuple[str, ...] = ()
    command: tuple[str, ...] = ()  # the words after --

    # What to measure
    commands: Annotated[tuple[str, ...], _row(WHAT, "-c --command", "list", "COMMAND", common=True, not_in="matrix bisect ab", leads="words",
        help="A command as one string. Repeatable; several are interleaved.")] = ()
    shell: Annotated[bool, _row(WHAT, "--shell", "flag", applies=(COMMAND, TASKS),
        help="Run commands with /bin/sh, for pipes and &&. Tasks that need one run in one anyway.")] = False
    metrics: Annotated[tuple[str, ...], _row(WHAT, "--metric", "list", "NAME=PATTERN", applies=(COMMAND, TASKS, SUITE, LOOP, SPEC), common=True, not_in="bisect watch ab",
        help="A number to read from the output. PATTERN is a regular expression with one group, json:KEY or kv:KEY. NAME[unit,higher|lower,method]=… says more. Repeatable.")] = ()
    name: Annotated[str | None, _row(WHAT, "--name", metavar="NAME", held=True, not_in="matrix",
        help="Name of the benchmark, if there is only one.")] = None
    format: Annotated[str | None, _row(WHAT, "--format", metavar="KIND", applies=(TASKS, SUITE, LOOP, *_MODELS, SPEC, ENDPOINT), not_in="matrix",
        help="Kind of target: suite, tasks, script, model, zoo, spec or endpoint.")] = None
    modules: Annotated[tuple[str, ...], _row(WHAT, "-m --module", "list", "NAME", also_in="find",
        help="A module or package instead of a script's file, as python -m takes it. Repeatable.")] = ()
    as_: Annotated[str | None, _row(WHAT, "--as", "choice", applies=_SCRIPTS, choices=("loop", "training", "models", "command"),
        help="How to measure a script.")] = None
    script_args: Annotated[tuple[str, ...], _row(WHAT, "--script-args", metavar="ARGS", parse=values.arguments, applies=_SWEPT, also_in="find", leads="words",
        help="Arguments for scripts, as one string; shorter: train.py -- --epochs 1. Separated by blanks, or by commas before options. Of a zoo: the parameters of its models, such as --batch_size 8.")] = ()
    python: Annotated[str | None, _row(WHAT, "--python", metavar="PATH", applies=(*_SWEPT, MODEL_FILE), also_in="find",
        help="Interpreter for scripts and models.  [default: python on the PATH]")] = None
    cwd: Annotated[str | None, _row(WHAT, "--cwd", metavar="DIR", applies=(COMMAND, *_SWEPT, MODEL_FILE), also_in="find",
        help="Folder to run in.  [default: this one]")] = None
    env: Annotated[dict[str, str | None], _row(WHAT, "--env", "pairs", "NAME=VALUE", parse=values.environment,
        help="Set a variable for the program; NAME alone removes it. Repeatable.")] = {}
    search_dirs: Annotated[tuple[str, ...], _row(WHAT, "--search-dir", "list", "DIR", applies=_SWEPT, aliases=("-s",), also_in="find",
        help="Folder to look up scripts in. Repeatable.")] = ()
    all_scripts: Annotated[bool, _row(WHAT, "--all", "flag", applies=_SWEPT, also_in="find",
        help="Every script of a folder, however many: of those named, else of the --search-dir folders, else of this one.")] = False
    shard: Annotated[tuple[int, int] | None, _row(WHAT, "--shard", metavar="I/N", parse=values.shard, applies=_SWEPT,
        help="Of the scripts of folders and the models of zoos only every N-th, from the I-th on, such as 3/8.")] = None
    shuffle: Annotated[bool, _row(WHAT, "--shuffle", "flag", applies=_SWEPT,
        help="Run the scripts of folders and the models of zoos in an order chosen by --seed.")] = False
    params: Annotated[tuple[str, ...], _row(WHAT, "--param", "pairs", "NAME=V,V", applies=(COMMAND, *_SWEPT), common=True, also_in="find",
        help="Measure once for each value. It fills {NAME} in a command, --NAME of a script, a size of a zoo's model; env:NAME is a variable. Repeatable.")] = ()
    sweep: Annotated[str, _row(WHAT, "--sweep", "choice", applies=(COMMAND, *_SWEPT, ENDPOINT), choices=("grid", "zip", "rate"), not_in="bisect", also_in="find",
        help="Combine several --param: every combination, or value by value. Of an endpoint, rate: find the highest rate that meets --slo.  [default: grid]")] = "grid"

    # How to measure it
    repeat: Annotated[int, Meta(ge=1, le=MOST_LAUNCHES), _row(HOW, "--repeat", metavar="N", least=1, most=MOST_OF_ONE, parse=parse_repeat, common=True, kept=True, held=True, not_in="bisect watch ab", measuring=True,
        help="Launches of each benchmark, or auto. From 6 on there is a confidence interval; auto launches until it is within ± 2 % (at most 100 launches or 5 minutes), 1% until it is that narrow, 60s for a minute. verdict launches alternating commands until it is clear which is faster or that they are the same (at most 10 minutes; verdict:30m: 30).  [default: 1]")] = 1
    warmup_runs: Annotated[int, Meta(ge=0, le=MOST_LAUNCHES), _row(HOW, "--warmup-runs", "count", "N", common=True, least=0, most=MOST_OF_ONE, kept=True, held=True, not_in="bisect", measuring=True, shown="Warm-up launches: {}",
        help="Extra launches first, recorded but not counted.")] = 0
    prepare: Annotated[tuple[str, ...], _row(HOW, "--prepare", "list", "COMMAND", applies=_HOOKED, leads="words",
        help="Run this before each launch, untimed. Give one for all benchmarks, or one for each.")] = ()
    setup: Annotated[str | None, _row(HOW, "--setup", metavar="COMMAND", applies=_HOOKED, leads="words",
        help="Run this once before the first launch. With {NAME} of --param: once for each value.")] = None
    cleanup: Annotated[str | None, _row(HOW, "--cleanup", metavar="COMMAND", applies=_HOOKED, leads="words",
        help="Run this once after the last launch, even if the run is interrupted.")] = None
    ignore_failure: Annotated[bool, _row(HOW, "-i --ignore-failure", "flag", applies=_HOOKED,
        help="Count launches with an exit code other than 0, and say so.")] = False
    interleave: Annotated[bool | None, _row(HOW, "--interleave/--no-interleave", "switch", kept=True, held=True, not_in="bisect watch ab", shown="Order: launches of all benchmarks alternate",
        help="Alternate the benchmarks' launches.  [default: commands and models, if several]")] = None
    turns: Annotated[float | None, _row(HOW, "--turns", metavar="TIME", parse=partial(values.at_least, least_s=0.05, where="--turns", remedy="a turn ends at a step: give 50ms or more, such as 500ms"), kept=True, not_in="bisect watch ab", measuring=True, shown="Turns: {}",
        help="Run interleaved benchmarks at the same time, in turns this long; for machines whose speed drifts.")] = None
    stop: Annotated[StopRule | None, _row(HOW, "--stop", metavar="RULE", parse=parse_stop_rule, common=True, held=True, measuring=True,
        help="When to stop a loop: 100 (steps), 30s or 1%. A percentage is the precision of the median. never: not before its own end.")] = None
    stop_grace: Annotated[float, Meta(ge=0), _row(HOW, "--stop-grace", metavar="TIME", parse=partial(parse_duration, where="--stop-grace"), applies=_SCRIPTS, kept=True,
        help="How long a training script may go on after its training was stopped early, to evaluate, save and clean up; then it is killed.  [default: 30s]")] = 30.0
    warmup: Annotated[Warmup | None, _row(HOW, "--warmup", metavar="RULE", parse=parse_warmup, held=True, measuring=True,
        help="Warm-up of a loop: auto, 20 (steps) or 5s.  [default: auto]")] = None
    loop: Annotated[str | None, _row(HOW, "--loop", metavar="NAME", applies=(COMMAND, TASKS, SUITE, LOOP),
        help="Loop that counts.  [default: the first called train]")] = None
    timeout: Annotated[float | None, _row(HOW, "--timeout", metavar="TIME", parse=partial(values.limit, where="--timeout", remedy="write 90s or 10m, or drop --timeout for no limit"), common=True, also_in="find",
        help="Limit for each launch, such as 90s or 10m. Checking a model's outputs has as long again.")] = None
    max_memory: Annotated[int | None, _row(HOW, "--max-memory", metavar="SIZE", parse=partial(values.size, where="--max-memory", remedy="write 8GiB or 512MiB"), kept=True, shown="Memory: at most {}",
        help="Limit for the memory of each launch, such as 8GiB: all its processes together are killed beyond it.")] = None
    lock_clocks: Annotated[str | None, _row(HOW, "--lock-clocks", "optional", "[=MHZ]", bare="auto",
        help="Lock the clocks of this machine's NVIDIA GPUs for the run, by default at 70 % of the highest, and unlock them whatever happens. Usually needs root.")] = None
    cores: Annotated[tuple[int, ...] | None, _row(HOW, "--cores", metavar="LIST", parse=values.cores, common=True, held=True,
        help="Pin to these cores, such as 0,2-3.")] = None
    on: Annotated[str | None, _row(HOW, "--on", metavar="NAME[:ARG]", common=True, names_from="benchwright.executors.registry:EXECUTORS.names", kept=True, shown="Measured on: {}",
        help="Where to run: local, ssh:HOST, slurm, ray or adb. In full adb:SERIAL, ssh:[USER@]HOST[:PORT], slurm[:PARTITION] or slurm:job=ID, an allocation of yours; ssh alone means the nodes of --system, adb alone the only Android device. Known: {names}.  [default: local]")] = None
    nodes: Annotated[int, _row(HOW, "--nodes", "count", "N", least=1, kept=True,
        help="With --on slurm or ray: how many nodes to ask the scheduler for, or to use of slurm:job=ID. Independent benchmarks share them.")] = 1
    slurm: Annotated[tuple[str, ...], _row(HOW, "--slurm", metavar="OPTIONS", parse=partial(values.words_of, where="--slurm"), kept=True,
        help="With --on slurm: options for sbatch, as one string, such as '--account=lab --time=30'.")] = ()
    slurm_profile: Annotated[str | None, _row(HOW, "--slurm-profile", metavar="NAME",
        help="With --on slurm: take options for sbatch, and the number of nodes, from this profile in slurm.yaml, which is looked for beside the suite and here.")] = None
    wait: Annotated[float | None, _row(HOW, "--wait", metavar="TIME", parse=partial(values.limit, where="--wait", remedy="write 10m or 1h, or drop --wait for no limit"), of_target=False,
        help="Give up if the scheduler has granted no nodes after this time, such as 1h.  [default: wait]")] = None
    platform: Annotated[str | None, _row(HOW, "--platform", metavar="NAME", not_in="matrix bisect watch ab",
        help="Run on every device of this platform: android, or host (also linux, mac). Each gets a separate run. What follows a slash is kept as a label, as in android/clang.")] = None
    device_names: Annotated[tuple[str, ...], _row(HOW, "--devices", "words", "NAME,NAME", parse=values.comma_words, not_in="matrix bisect ab",
        help="Only these devices, by name or hash, nodes of $BENCHWRIGHT_SYSTEM among them; see benchwright devices.")] = ()
    excluded_devices: Annotated[tuple[str, ...], _row(HOW, "--excluded-devices", "words", "NAME,NAME", parse=values.comma_words, not_in="matrix bisect ab",
        help="All but these devices, by name or hash.")] = ()
    remote_dir: Annotated[str | None, _row(HOW, "--remote-dir", metavar="DIR", kept=True,
        help="Folder for files sent to machines that do not see the base folder.  [default: ~/.cache/benchwright/node there]")] = None
    jobs: Annotated[int | None, _row(HOW, "--jobs", "count", "N", least=1,
        help="Processes that each launch measures side by side.")] = None
    sample_interval: Annotated[float, Meta(gt=0), _row(HOW, "--sample-interval", metavar="TIME", parse=partial(values.at_least, least_s=0.01, where="--sample-interval", remedy="sampling takes a few ms: give 10ms or more"), kept=True, shown="Sampled every: {}",
        help="How often to sample memory and devices.  [default: 0.5s]")] = 0.5
    seed: Annotated[int, _row(HOW, "--seed", "count", "N", kept=True, held=True, also_in="find",
        help="Seed for the order of interleaved launches and for scripts' random numbers.")] = 0
    validations: Annotated[tuple[str, ...], _row(HOW, "--validations", "words", "LAYERS", parse=values.comma_words, kept=True, shown="Further checks: {}",
        help="More checks: usage, planning, version, plausibility, or all.")] = ()

    # Models
    runtimes: Annotated[tuple[str, ...], _row(OF_MODELS, "--runtime", "words", "NAME,NAME", parse=values.comma_words, applies=(*_MODELS, SPEC), common=True, names_from="benchmodels.runtimes.registry:known_runtimes", kept=True, held=True,
        help=f"Runtimes, such as {DEFAULT_RUNTIME},onnxruntime. Known: {{names}}.  [default: {DEFAULT_RUNTIME}]")] = ()
    devices: Annotated[tuple[str, ...], _row(OF_MODELS, "--device", "words", "NAME,NAME", parse=values.devices, applies=_MODELS, common=True, kept=True, held=True,
        help="Devices: cpu, cuda or cuda:1.  [default: where the script calls the model; of zoos and files cpu]")] = ()
    precisions: Annotated[tuple[str, ...], _row(OF_MODELS, "--precision", "words", "NAME,NAME", parse=values.precisions, applies=_MODELS, common=True, kept=True, held=True,
        help="Precisions, such as bf16,int8-weights.  [default: fp32]")] = ("fp32",)
    scale: Annotated[str, _row(OF_MODELS, "--scale", "choice", applies=(ZOO,), choices=ZOO_SCALES, kept=True, of_model=True,
        help="Size of a zoo's models: tiny (few layers, small inputs, at most 30 M parameters), small, or full (as published).  [default: tiny]")] = ZOO_SCALES[0]
    threads: Annotated[tuple[int, ...], _row(OF_MODELS, "--threads", metavar="N,N", parse=partial(values.counts, where="--threads", most=1024), applies=_MODELS, kept=True, held=True,
        help="Threads of the runtime; several are measured one by one.  [default: one per core]")] = ()
    streams: Annotated[tuple[int, ...], _row(OF_MODELS, "--streams", metavar="N,N", parse=partial(values.counts, where="--streams", most=256), applies=_MODELS, kept=True, held=True, measuring=True,
        help="Also measure throughput and latency with N concurrent callers. Several, such as 1,2,4,8, give the curve with its knee.")] = ()
    batch: Annotated[tuple[int, ...], _row(OF_MODELS, "--batch", metavar="N,N", parse=partial(values.counts, where="--batch", most=1_000_000), applies=_SWEPT,
        help="Measure each batch size: shorter for --param batch_size=N,N.")] = ()
    items: Annotated[int | None, _row(OF_MODELS, "--items", "count", "N", applies=_MODELS, least=1, kept=True, of_model=True, held=True,
        help="Items in one call, for items/s.  [default: the batch size, if known; else calls/s]")] = None
    max_depth: Annotated[int, _row(OF_MODELS, "--max-depth", "count", "N", applies=(MODELS,), least=0, kept=True, of_model=True, also_in="find",
        help="Treat sub-modules down to this depth as models too.")] = 0
    weights: Annotated[bool, _row(OF_MODELS, "--weights", "flag", applies=(MODELS,), kept=True, also_in="find",
        help="Make the values of weights part of a model's identity.")] = False
    profile: Annotated[bool, _row(OF_MODELS, "--profile", "flag", applies=_MODELS, kept=True, of_model=True, held=True, measuring=True,
        help="Also time each operator, in a separate launch.")] = False
    cold: Annotated[bool, _row(OF_MODELS, "--cold", "flag", applies=_MODELS, kept=True, shown="Processes: each started afresh",
        help="Start each process afresh. By default, models of a run are measured in processes forked from one that has imported torch.")] = False
    overlap: Annotated[bool, _row(OF_MODELS, "--overlap", "flag", applies=_MODELS, kept=True, shown="Overlap: the next models start up while one is measured",
        help="Build and check other models of a zoo while one is on the GPU, on the other half of at least 8 cores; they stand still while it is timed.")] = False
    shapes: Annotated[dict[str, tuple[int, ...]], _row(OF_MODELS, "--shape", "pairs", "INPUT=1x3x224x224", parse=values.shapes, applies=(MODEL_FILE,), kept=True, of_model=True,
        help="Shape of a model file's input. Repeatable.")] = {}
    trust: Annotated[bool, _row(OF_MODELS, "--trust", "flag", applies=(MODEL_FILE,), kept=True, of_model=True,
        help="Load model files that can run code of their own, such as pickles in a .pt2.")] = False
    find_timeout: Annotated[float, _row(OF_MODELS, "--find-timeout", metavar="TIME", parse=partial(values.limit, where="--find-timeout", remedy="write 90s, 10m or 2h"), applies=(MODELS,), kept=True, also_in="find",
        help="Limit for the search of a script for its models; those found until then count.  [default: 10m]")] = 600.0
    rebuild: Annotated[str, _row(OF_MODELS, "--rebuild", "choice", applies=_MODELS, choices=("if_needed", "always", "never"), kept=True, of_model=True, held=True, also_in="find",
        help="When to look for, export and compile models again.  [default: if_needed]")] = "if_needed"
    build_jobs: Annotated[int | None, _row(OF_MODELS, "--build-jobs", "count", "N", applies=_MODELS, least=1, kept=True,
        help="Builds at a time, while nothing is measured.  [default: one for every four cores]")] = None
    lean_cache: Annotated[bool, _row(OF_MODELS, "--lean-cache", "flag", applies=_MODELS, kept=True, measuring=True,
        help="Remove each build once it was measured; what is known about it is kept.")] = False
    onnx_opset: Annotated[int | None, _row(OF_MODELS, "--onnx-opset", "count", "N", applies=_MODELS, least=7, most=30, kept=True, of_model=True, held=True,
        help="Operator set of ONNX to export models to.  [default: the exporter's choice]")] = None
    sequence_file: Annotated[str | None, _row(OF_MODELS, "--sequence-file", metavar="FILE.py", applies=_MODELS, kept=True, of_model=True, held=True,
        help="Build sequence: a Python file whose SEQUENCE lists functions that change a model before or after its export to ONNX.")] = None
    build_only: Annotated[bool, _row(OF_MODELS, "--build-only", "flag", applies=_MODELS, kept=True, held=True,
        help="Build models for the runtimes and measure nothing; later runs use the builds.  [default runtime: onnxruntime]")] = False
    export_only: Annotated[bool, _row(OF_MODELS, "--export-only", "flag", applies=_MODELS, kept=True, held=True,
        help="Export models to ONNX and stop there; the report names the files.")] = False
    build_timeout: Annotated[float, _row(OF_MODELS, "--build-timeout", metavar="TIME", parse=partial(parse_duration, where="--build-timeout"), applies=_MODELS, kept=True, of_model=True, held=True,
        help="Limit for each step of a build, and for the check of a model's outputs.  [default: 10m]")] = 600.0

    # Task files
    tasks: Annotated[tuple[str, ...], _row(OF_TASKS, "--task", "list", "NAME", applies=(TASKS, SUITE, SPEC, ZOO), common=True, also_in="find",
        help="Only this task, entry or test. Of a zoo: models for this task, such as vision. Repeatable.")] = ()
    framework: Annotated[str | None, _row(OF_TASKS, "--framework", metavar="NAME", applies=(TASKS, SPEC),
        help="Of task files: prefix for the keys of the result. Of specifications: the framework, which chooses flags and observer.")] = None
    metrics_suffix: Annotated[str | None, _row(OF_TASKS, "--metrics-suffix", metavar="NAME", applies=(TASKS,),
        help="Suffix for the keys of the result.")] = None
    kvstore: Annotated[str | None, _row(OF_TASKS, "--kvstore", metavar="X", applies=(TASKS,),
        help="Rewrites --kvstore X.")] = None
    dtype: Annotated[str | None, _row(OF_TASKS, "--dtype", metavar="X", applies=(TASKS,),
        help="Rewrites --dtype X.")] = None
    metrics_policy: Annotated[str | None, _row(OF_TASKS, "--metrics-policy", metavar="NAME", applies=(TASKS,),
        help="Read the output with the patterns of this metrics_… section.")] = None
    command_to_execute: Annotated[str | None, _row(OF_TASKS, "--command-to-execute", metavar="COMMAND", applies=(TASKS,),
        help="Command for --metrics-policy.")] = None
    data_set: Annotated[str | None, _row(OF_TASKS, "--data-set", metavar="NAME", applies=(TASKS,),
        help="Name of the data set, for --metrics-policy.")] = None
    metrics_template: Annotated[str | None, _row(OF_TASKS, "--metrics-template", metavar="FILE", applies=(TASKS,), leads="file",
        help="Task file that holds the policy.")] = None
    num_gpus: Annotated[int | None, _row(OF_TASKS, "--num-gpus", "count", "N", applies=(TASKS,),
        help="Number of GPUs; rewrites --gpus N.")] = None
    epochs: Annotated[int | None, _row(OF_TASKS, "--epochs", "count", "N", applies=(TASKS,),
        help="Rewrites --epochs N.")] = None
    set_flags: Annotated[tuple[str, ...], _row(OF_TASKS, "--set-flag", "pairs", "FLAG=VALUE", applies=(TASKS,),
        help="Rewrites or adds any other flag. Repeatable.")] = ()
    remove_flags: Annotated[tuple[str, ...], _row(OF_TASKS, "--remove-flag", "list", "FLAG", applies=(TASKS,),
        help="Removes a flag. Repeatable.")] = ()

    # Suites
    configs: Annotated[tuple[str, ...], _row(OF_SUITES, "--config", "list", "SUITE",
        help="A suite, as if named as a target.  [default: $BENCHWRIGHT_CONFIG]")] = ()
    system: Annotated[str | None, _row(OF_SUITES, "--system", metavar="FILE", applies=(SUITE,), leads="file",
        help="System file: the machines to run on.  [default: $BENCHWRIGHT_SYSTEM]")] = None
    select: Annotated[tuple[str, ...], _row(OF_SUITES, "--select", "words", "LIST", parse=values.comma_words, applies=(SUITE, *_SWEPT), common=True, also_in="find",
        help="Only these names, groups or tags. Of a folder of scripts or a zoo: labels as key=value. Comma-separated.")] = ()
    exclude: Annotated[tuple[str, ...], _row(OF_SUITES, "--exclude", "words", "LIST", parse=values.comma_words, applies=(SUITE, ZOO), also_in="find",
        help="All but these names, groups or tags. Of a zoo: labels too.")] = ()
    overrides: Annotated[tuple[str, ...], _row(OF_SUITES, "--override", "list", "PATH=VALUE", applies=(SUITE,),
        help="Change a value, such as resnet50.argv.--epochs=1 or '*.max_duration=60'. Repeatable.")] = ()
    use_current_env: Annotated[bool, _row(OF_SUITES, "--use-current-env", "flag", applies=(SUITE,), aliases=("--use_current_env",),
        help="Use the current Python instead of installed environments.")] = False
    no_setup: Annotated[bool, _row(OF_SUITES, "--no-setup", "flag", applies=(SUITE, SPEC), of_target=False,
        help="Do not install, prepare or fetch what is missing; say how to instead.")] = False
    size: Annotated[str | None, _row(OF_SUITES, "--size", metavar="HOW", applies=(SUITE,),
        help="Batch sizes: auto (fit the device), optimized, default, a number, or search (find the largest that fits).")] = None
    capacity: Annotated[str | None, _row(OF_SUITES, "--capacity", metavar="SIZE", applies=(SUITE,),
        help="Device memory to size for.  [default: the device's]")] = None
    scaling: Annotated[str | None, _row(OF_SUITES, "--scaling", metavar="FILE", applies=(SUITE,), leads="file",
        help="Known memory use by batch size, for --size auto.")] = None
    save_scaling: Annotated[str | None, _row(OF_SUITES, "--save-scaling", metavar="FILE", applies=(SUITE,),
        help="Add this run's memory use by batch size to that file.")] = None

    # Specifications
    programs: Annotated[tuple[str, ...], _row(OF_SPECS, "--program", "list", "[NAME=]PATH", applies=(SPEC,),
        help="Program for {program}; with a NAME, for {NAME}. Repeatable.")] = ()
    info: Annotated[str | None, _row(OF_SPECS, "--info", metavar="JSON", applies=(SPEC,),
        help="What is measured: treatment, and control to alternate and compare it with, each with program, commit and commit_time. Text or a file.")] = None
    string_map: Annotated[str | None, _row(OF_SPECS, "--string-map", metavar="JSON", applies=(SPEC,),
        help="Values for placeholders, such as '{\"IMAGENET_DIR\": \"/data\"}'. Text or a file.")] = None
    shared_libs: Annotated[tuple[str, ...], _row(OF_SPECS, "--shared-libs", "words", "FILE,FILE", parse=values.comma_words, applies=(SPEC,),
        help="Shared libraries the programs load.")] = ()
    root_model_dir: Annotated[str | None, _row(OF_SPECS, "--root-model-dir", metavar="DIR", applies=(SPEC,),
        help="Folder for locations that begin with //.")] = None
    model_cache: Annotated[str | None, _row(OF_SPECS, "--model-cache", metavar="DIR", applies=(SPEC,),
        help="Folder for downloaded files.  [default: artifacts in the base folder]")] = None
    force_model_cache: Annotated[bool, _row(OF_SPECS, "--force-model-cache", "flag", applies=(SPEC,),
        help="Allow a --model-cache inside a git checkout.")] = False
    offline: Annotated[bool, _row(OF_SPECS, "--offline", "flag", applies=(SPEC,), variable="BENCHWRIGHT_OFFLINE",
        help="Fetch nothing; use only files that are on this machine.  [default: $BENCHWRIGHT_OFFLINE]")] = False
    run_type: Annotated[str | None, _row(OF_SPECS, "--run-type", "choice", applies=(SPEC,), choices=("benchmark", "verify", "regress"), not_in="watch",
        help="Label that says why it is measured.  [default: benchmark]")] = None
    regressed_types: Annotated[tuple[str, ...], _row(OF_SPECS, "--regressed-types", metavar="JSON", parse=partial(values.texts_in_json, where="--regressed-types", remedy="""write '["NET"]'"""), applies=(SPEC,), not_in="watch",
        help="With --run-type regress: types of records to mark as regressed, such as '[\"NET\"]'.")] = ()
    android_dir: Annotated[str | None, _row(OF_SPECS, "--android-dir", metavar="DIR", applies=(SPEC,),
        help="Folder on Android devices.  [default: /data/local/tmp/]")] = None

    # Endpoints
    served_model: Annotated[str | None, _row(OF_ENDPOINTS, "--model", metavar="NAME", applies=(ENDPOINT,),
        help="Model to ask for, as the server calls it.")] = None
    request_load: Annotated[str, _row(OF_ENDPOINTS, "--load", metavar="LOAD", applies=(ENDPOINT,),
        help="When requests come: 10/s (at random), constant:10/s, trace (times of the --workload file), users:8 (each waits for its answer) or offline (all at once).  [default: 1/s]")] = "1"
    request_workload: Annotated[str | None, _row(OF_ENDPOINTS, "--workload", metavar="WORKLOAD", applies=(ENDPOINT,),
        help="What is asked: random:in=256,out=64,prefix=0.5 (lengths in tokens: 256, 128-512 or 256~64; the share of each prompt that all begin with), or a file with a request as JSON on each line.  [default: random:in=256,out=64]")] = None
    objective: Annotated[str | None, _row(OF_ENDPOINTS, "--slo", metavar="LIMITS", applies=(ENDPOINT,),
        help="What requests should meet, such as ttft=500ms,tpot=50ms@p90: time to first token, time per output token, e2e, and for which share.")] = None
    endpoint_api: Annotated[str, _row(OF_ENDPOINTS, "--api", "choice", applies=(ENDPOINT,), choices=("chat", "completions"),
        help="Which of the server's interfaces to use.  [default: chat]")] = "chat"
    key_from: Annotated[str | None, _row(OF_ENDPOINTS, "--key-from", metavar="VARIABLE|@FILE", applies=(ENDPOINT,),
        help="Where the key is: an environment variable, or @FILE. Never the key itself, which others could see.  [default: OPENAI_API_KEY]")] = None
    client_processes: Annotated[int, _row(OF_ENDPOINTS, "--clients", "count", "N", applies=(ENDPOINT,), least=1, most=256,
        help="Processes that send, each on a core of its own. One is enough for some thousand chunks a second.  [default: 1]")] = 1
    extra_body: Annotated[str | None, _row(OF_ENDPOINTS, "--extra-body", metavar="JSON", applies=(ENDPOINT,),
        help="More keys for each request, such as '{\"ignore_eos\": true}'. null removes one of ours.")] = None

    # Results
    labels: Annotated[dict[str, str], _row(KEEP, "--label", "pairs", "KEY=VALUE", parse=values.labels, common=True, held=True,
        help="Label to keep with the results. Repeatable.")] = {}
    tags: Annotated[tuple[str, ...], _row(KEEP, "--tag", "list", "TAG", held=True,
        help="Word to find the run by. Repeatable.")] = ()
    run_name: Annotated[str | None, _row(KEEP, "--run-name", metavar="NAME", common=True, aliases=("--run_name",), held=True, not_in="plan matrix bisect",
        help="Name of the run; {time} stands for the time.")] = None
    keep_env: Annotated[tuple[str, ...], _row(KEEP, "--keep-env", "list", "NAME", kept=True, held=True, shown="Recorded variables: {}",
        help="Record this environment variable too; globs such as 'MY_*' work. Repeatable.")] = ()
    share: Annotated[bool, _row(KEEP, "--share", "flag", variable="BENCHWRIGHT_SHARE", kept=True, held=True,
        help="Let others read the run's files, as far as the umask allows.  [default: $BENCHWRIGHT_SHARE, else only you]")] = False
    discard_logs: Annotated[bool, _row(KEEP, "--discard-logs", "flag", kept=True, held=True, shown="Logs: not kept",
        help="Delete a program's log if it succeeded.")] = False
    base: Annotated[str | None, _row(KEEP, "--base", metavar="DIR", common=True, aliases=("--cache-dir", "-d"), of_target=False, held=True, also_in="find",
        help="Folder for benchwright's files, also --cache-dir. It has runs, builds and labels.  [default: $BENCHWRIGHT_BASE, else your data folder]")] = None
    resume: Annotated[str | None, _row(KEEP, "--resume", "optional", "[=RUN]", common=True, bare="newest", of_target=False, not_in="plan matrix bisect watch",
        help="Finish an interrupted run. Finished work is skipped.  [default: the newest run of the same target]")] = None
    anyway: Annotated[bool, _row(KEEP, "--anyway", "flag", of_target=False, not_in="plan bisect watch",
        help="With --resume: continue although code, environment or packages changed, and mark the results.")] = False
    store: Annotated[str | None, _row(KEEP, "--store", metavar="URL", of_target=False, held=True, not_in="plan bisect",
        help="Store to put the run into.  [default: $BENCHWRIGHT_STORE, else store.db in the base folder]")] = None
    no_store: Annotated[bool, _row(KEEP, "--no-store", "flag", of_target=False, held=True, not_in="plan bisect",
        help="Do not put the run into the store.")] = False
    local_reporter: Annotated[str | None, _row(KEEP, "--local-reporter", metavar="DIR", of_target=False, not_in="plan",
        help="Also write the results into this folder, a file for each test, for tools that read such folders.")] = None
    remote_reporter: Annotated[str | None, _row(KEEP, "--remote-reporter", metavar="URL|CATEGORY", of_target=False, not_in="plan",
        help="Also send the results to this server. What cannot be sent waits in the base folder for the next time.")] = None
    remote_access_token: Annotated[str | None, _row(KEEP, "--remote-access-token", metavar="TOKEN", variable="BENCHWRIGHT_REMOTE_TOKEN", of_target=False, not_in="plan",
        help="Token for --remote-reporter, or @FILE that holds it. Others can see a command line: better set $BENCHWRIGHT_REMOTE_TOKEN.")] = None
    show_output: Annotated[bool, _row(KEEP, "--show-output", "flag", common=True, of_target=False, kept=True, not_in="plan", also_in="find",
        help="Show what the programs print, on stderr.")] = False
    as_json: Annotated[bool, _row(KEEP, "--json", "flag", common=True, of_target=False, not_in="matrix watch",
        help="Print the results as JSON.")] = False
    dash: Annotated[str, _row(KEEP, "--dash", "choice", choices=("short", "long", "no"), of_target=False, not_in="plan matrix watch",
        help="Progress: long (a line per process), short (one line) or no.  [default: long]")] = "long"
    quiet: Annotated[bool, _row(KEEP, "-q --quiet", "flag", common=True, of_target=False, not_in="plan", also_in="find",
        help="No progress.")] = False
    verbose: Annotated[bool, _row(KEEP, "-v --verbose", "flag", of_target=False, not_in="plan matrix",
        help="More progress.")] = False

    # What no option says
    enough: StopRule | None = None  # when fewer launches than `repeat` will do: seconds, or the precision of the median
    decision: Decision | None = None  # when launches of alternating sides are enough for a verdict
    grace: Annotated[float, Meta(ge=0)] = 5.0  # of a process that was asked to end
    workers: int | None = None  # $DEEPLEARNING_WORKERS_COUNT, used by two of the compute methods of task files
    suite_paths: SuitePaths | None = None  # of suites
    system_options: dict[str, Any] = {}  # of a matrix of runs: sizer.auto, cpu.n_workers…
    treatment: RevisionInfo | None = None  # of a specification, in place of `info`
    stops_after: str = ""  # build, export: nothing is measured
    sequence_digest: str | None = None  # of the content of `sequence_file`
    one_of_many: bool = False  # the target is a script of a folder, which the user did not name
    most_scripts: int | None = 5  # of a folder or pattern, unless all are asked for; None: any number
    same_models: dict[str, tuple[str, ...]] = {}  # targets that were left out, by the one that is the same model
# fmt: on

    @property
    def up_to(self) -> bool:
        """Whether fewer launches than `repeat` may be enough."""
        return self.enough is not None or self.decision is not None

    @property
    def swept(self) -> tuple[str, ...]:
        """All parameters that are swept, each as NAME=VALUE,VALUE."""
        return (*self.params, *((f"batch_size={','.join(map(str, self.batch))}",) if self.batch else ()))

    @property
    def names_devices(self) -> bool:
        """Whether they choose among the devices of the lab."""
        return bool(self.platform or self.device_names or self.excluded_devices)

    @property
    def say_how_to_build(self) -> bool:
        """Whether they stop or change the builds of models."""
        return bool(self.build_only or self.export_only or self.sequence_file)

    @property
    def builds(self) -> str:
        """The folder of cached builds of models; empty without a base folder."""
        return f"{self.base}/builds" if self.base else ""

    @property
    def zoos(self) -> str:
        """The folder of environments of zoos' own; empty without a base folder."""
        return f"{self.base}/zoos" if self.base else ""

    @property
    def definitions(self) -> str:
        """The folder for definitions of suites that are cloned from git; empty without a base folder."""
        return f"{self.base}/extra/.definitions" if self.base else ""

    def kept(self) -> "Options":
        """Options stored with a run, for resuming it: no paths of ours, and nothing that could be a secret."""
        return Options(**{name: getattr(self, name) for name in KEPT})

    def shown_as(self, others: "Options") -> "Options":
        """With what `others` say about showing output."""
        return replace(self, show_output=others.show_output)

    @property
    def stores(self) -> bool:
        """Whether the run is added to a store."""
        return not self.no_store

    @property
    def searched(self) -> tuple[str, ...]:
        """The folders to look for scripts in: those of --search-dir, else this one for --all alone."""
        alone = self.all_scripts and not (self.targets or self.command or self.commands)
        return self.search_dirs or ((".",) if alone else ())

    @property
    def question(self) -> tuple[object, ...]:
        """The targets, the commands and their parameters, as they were written."""
        return self.targets, self.command, self.commands, self.metrics, self.script_args, self.params

    def with_every_script(self) -> "Options":
        """With all scripts of the folders that were named."""
        return replace(self, all_scripts=True)

    def until(self, decision: Decision) -> "Options":
        """With as many launches as a verdict needs."""
        return replace(self, repeat=decision.most_launched, decision=decision, enough=None)

    def launched(self, times: int, *, interleave: bool) -> "Options":
        """With exactly as many launches, and none to warm up."""
        return replace(
            self, repeat=times, enough=None, decision=None, warmup_runs=0, interleave=interleave, turns=None
        )

    def applied(self, benchmark: Benchmark) -> Benchmark:
        """`benchmark` with what these options say about any benchmark; what they leave open is its own."""
        placement = benchmark.placement
        if self.cores is not None:
            placement = replace(placement, cores=self.cores)
        if self.jobs is not None:
            placement = replace(placement, jobs=self.jobs)
        return replace(
            benchmark,
            placement=placement,
            stop=self.stop or benchmark.stop,
            warmup=self.warmup or benchmark.warmup,
            loop=self.loop or benchmark.loop,
            timeout_s=benchmark.timeout_s if self.timeout is None else self.timeout,
            env=benchmark.env | self.env,
            labels=benchmark.labels | self.labels,
            tags=tuple(dict.fromkeys((*benchmark.tags, *self.tags))),
            ignore_failure=benchmark.ignore_failure or self.ignore_failure,
        )


def _table() -> dict[str, Option]:
    usual = Options()
    hints = Options.__annotations__
    rows = {name: [x for x in getattr(hints[name], "__metadata__", ()) if isinstance(x, Option)] for name in hints}
    return {name: replace(row, name=name, default=getattr(usual, name)) for name, found in rows.items() for row in found}


OPTIONS: dict[str, Option] = _table()
KEPT = (
    *(name for name, row in OPTIONS.items() if row.kept),
    *("enough", "decision", "grace", "workers", "suite_paths", "stops_after", "sequence_digest"),
)
# A resumed run must agree on these: how and to whom output is shown does not change what is measured.
COMPARED = tuple(name for name in KEPT if name not in ("show_output", "share"))

OF_MODEL = (*(name for name, row in OPTIONS.items() if row.of_model), "stops_after", "sequence_digest", "builds")


def refuse_unrelated(given: Collection[str], sorts: Iterable[str]) -> None:
    """InvalidInput for an option that was given and applies to none of the sorts of target."""
    found = set(sorts)
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
