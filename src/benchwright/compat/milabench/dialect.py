"""milabench's suites: folders with a benchfile.py, scripts run by voir, and what both find in their environment."""

from __future__ import annotations

import glob
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import yaml

from benchwright.compat.milabench.benchfile.benchfile import BenchFacts, read_benchfile
from benchwright.compat.milabench.configuration import MilabenchConfig
from benchwright.compat.milabench.voir_key import VOIR, loop_rules
from benchwright.compat.voir.company import STREAM, own_voirfile
from benchwright.core.benchmark import Benchmark, Runner
from benchwright.core.errors import InvalidInput
from benchwright.kinds.suite.dialect import (
    DialectPlan,
    DialectProcess,
    DialectStep,
    Fill,
    SlurmProfiles,
    SuiteDialect,
    Variables,
)
from benchwright.kinds.suite.folder_facts import BENCHFILE, Phase
from benchwright.kinds.suite.plan.machine_facts import MachineFacts
from benchwright.kinds.suite.plan.process_environment import BenchmarkPlace
from benchwright.kinds.suite.read.stop_rules import LoopRules
from benchwright.kinds.yaml.value_types import Key
from benchwright.plan.process_slots import ProcessSlot

_PLACES = ("slurm.yaml", "config/slurm.yaml", "config/clusters/slurm.yaml", "clusters/slurm.yaml")
_REMEDY = "write NAME: [--partition=gpu, --time=60]"


def find_profiles(folder: str) -> SlurmProfiles | None:
    """The profiles of `milabench schedule` in the first `slurm.yaml` of `folder`, a suite's or a checkout's."""
    file = next((path for place in _PLACES if os.path.isfile(path := os.path.join(folder, place))), None)
    if file is None:
        return None
    try:
        with open(file, encoding="utf-8") as opened:
            body = yaml.safe_load(opened)
    except (OSError, ValueError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise InvalidInput(f"cannot be read: {why}", where=file, remedy=_REMEDY) from error
    if not isinstance(body, dict):
        raise InvalidInput("has no profiles", where=file, remedy=_REMEDY)
    return SlurmProfiles(file, {str(name): _words(file, name, items) for name, items in body.items()})


def _words(file: str, name: object, items: Any) -> tuple[str, ...]:
    """`-w cn-d[003-004]` is one item and becomes two words."""
    if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
        raise InvalidInput(f"'{name}' is not a list of options", where=file, remedy=_REMEDY)
    return tuple(word for item in items for word in shlex.split(item))


_PREFIX = "MILABENCH_"


class MilabenchDialect(SuiteDialect):
    """Every suite's scripts find $MILABENCH_CONFIG and milabench's folders: many that have no benchfile.py read them."""

    def facts(self, folder: str) -> BenchFacts | None:
        facts = read_benchfile(folder)
        return facts if facts.is_ours else None

    def templates(self) -> Mapping[str, str]:
        return {"voir": os.path.join(os.path.dirname(__file__), "templates", "voir")}

    def entry_keys(self) -> Mapping[str, Key]:
        return {"voir": Key(VOIR, "for scripts with a voirfile; stop, interval and skip count for all")}

    def loop_rules(self, entry: Mapping[str, Any]) -> LoopRules | None:
        return loop_rules(entry["voir"].get("options") or {}) if entry.get("voir") else None

    def slurm_profiles(self, folder: str) -> SlurmProfiles | None:
        return find_profiles(folder)

    def names(self, place: BenchmarkPlace, benchmark: str) -> dict[str, object]:
        """`{milabench_data}` and the like."""
        return {f"milabench_{name}": value for name, value in {**place.folders, "name": benchmark}.items()}

    def variables(self, place: BenchmarkPlace, machine: MachineFacts) -> Variables:
        """$TORCH_HOME and $HF_HOME as milabench sets them: a base that it prepared is used as it is."""
        folders = place.folders
        variables: Variables = {
            "MILABENCH_BASE": folders["base"],
            "MILABENCH_DATA_DIR": folders["data"],
            **{f"{_PREFIX}DIR_{name.upper()}": folder for name, folder in folders.items()},
            "TORCH_HOME": folders["cache"],
            "HF_HOME": folders["data"],
        }
        if os.path.exists(os.path.join(place.folder.path, BENCHFILE)):  # milabench's `make_env` says so
            variables["OMP_NUM_THREADS"] = str(max(1, machine.names["cpu_per_gpu"]))
        if place.environment.local_packages and not _has_benchmate(place):
            variables["PYTHONPATH"] = place.environment.local_packages[0]
        return variables

    def described(
        self, benchmark: Benchmark, place: BenchmarkPlace, machine: MachineFacts, run: str
    ) -> Callable[[ProcessSlot, int | None, tuple[str, ...] | None], Variables]:
        config = MilabenchConfig(benchmark, place, machine, run)
        return lambda slot, repeat, tag: {"MILABENCH_CONFIG": config.of(slot, repeat, tag)}

    def run(
        self, runner: Runner, program: Sequence[str], stem: str, *, contained: bool, together: bool
    ) -> DialectProcess:
        """Neither a launcher's children nor a container inherit descriptor 3: there, events are hidden in the output."""
        config = f"{stem}.voir.json"
        text = msgspec.json.encode(runner.settings).decode()
        env, files = own_voirfile(os.path.dirname(stem)) if contained or together else ({}, {})
        return DialectProcess(
            argv=("-m", "voir", *(("--config", config) if runner.settings else ()), *program),
            env={"DATA_FD": "1" if contained else "3", **env},
            files=({config: text} if runner.settings else {}) | files,
            data_file=None if contained else f"{stem}.voir",
            dialect=STREAM,
        )

    def plan(self, benchmark: Benchmark, place: BenchmarkPlace, machine: MachineFacts, fill: Fill) -> DialectPlan:
        from benchwright.compat.milabench.own_plan import own_plan

        return own_plan(benchmark, place, machine, fill)

    def follow(
        self,
        phase: Phase,
        benchmark: Benchmark,
        place: BenchmarkPlace,
        machine: MachineFacts,
        python: str,
        stem: str,
        fill: Fill,
        perform: Callable[[DialectStep], int],
    ) -> None:
        """While it installs, requirements are those of the whole group, and installed by now."""
        from benchwright.compat.milabench.benchfile.child import Action, ask_benchfile
        from benchwright.compat.milabench.own_plan import request_of, started_words

        path = os.path.join(place.folder.path, BENCHFILE)
        config = f"{stem}.voir.json"
        request = request_of(benchmark, place, machine)
        known = {name: value for name, value in request["variables"].items() if name.startswith(_PREFIX)}

        def step(action: Action) -> int:
            if phase == "install" and action.do == "requirements":
                return 0
            if action.do not in ("pip", "execute"):
                remedy = "name what it needs in requirements.in"
                raise InvalidInput(f"its {phase} asks for {action.do}", where=path, remedy=remedy)
            is_install = action.do == "pip"
            argv = action.argv if is_install else started_words(action.argv, python, fill, config)
            settings = msgspec.json.encode(place.folder.config.get("voir") or {}).decode()
            return perform(
                DialectStep(
                    argv=argv,
                    cwd=action.cwd,
                    is_install=is_install,
                    env={**(known if phase == "install" else {}), **action.env},
                    files={config: settings} if config in argv else {},
                )
            )

        ask_benchfile(path, phase, request, step, fill)


def _has_benchmate(place: BenchmarkPlace) -> bool:
    """An environment of ours has it installed; in somebody else's one looks."""
    if place.is_ours:
        return True
    prefix = os.path.dirname(os.path.dirname(place.python))
    return bool(glob.glob(os.path.join(glob.escape(prefix), "lib", "python*", "*-packages", "*benchmate*")))
