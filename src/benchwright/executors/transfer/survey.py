"""Facts about another machine, found with plain POSIX sh: its folder for us, free space, tools, Pythons."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from benchwright.core.errors import CannotMeasure
from benchwright.core.machine import UNKNOWN, Machine
from benchwright.executors.transfer.shell import ANSWER, Shell, ask

_SURVEY_S = 60.0
SUMS = ("sha256sum", "md5sum", "cksum")  # the first one installed verifies transfers

# $1: the folder to use; empty: one in the home. Prints `key value` lines.
_SCRIPT = f"""\
folder=${{1:-${{XDG_CACHE_HOME:-$HOME/.cache}}/benchwright/node}}
case $folder in "~/"*) folder=$HOME/${{folder#"~/"}};; /*) ;; *) folder=$HOME/$folder;; esac
umask 077
mkdir -p "$folder/objects" "$folder/trees" || exit 1
cd "$folder" || exit 1
[ -w . ] || {{ echo "$folder: may not be written" >&2; exit 1; }}
echo '{ANSWER}'
echo "folder $(pwd -P)"
echo "free $(df -Pk . 2>/dev/null | tail -n 1 | sed 's/.* \\([0-9][0-9]*\\)  *[0-9]*% .*/\\1/')"
echo "system $(uname -s)"
echo "kernel $(uname -r)"
echo "architecture $(uname -m)"
echo "hostname $(uname -n)"
echo "cores $(nproc 2>/dev/null || grep -c ^processor /proc/cpuinfo 2>/dev/null)"
echo "total $(grep -c ^processor /proc/cpuinfo 2>/dev/null)"
echo "memory $(sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo 2>/dev/null)"
echo "cpu $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | sed q)"
echo "hardware $(sed -n 's/^Hardware[^:]*: *//p; s/^Model[^:]*: *//p' /proc/cpuinfo 2>/dev/null | sed q)"
echo "governor $(cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor 2>/dev/null)"
echo "libc $(getconf GNU_LIBC_VERSION 2>/dev/null)"
for tool in {" ".join(SUMS)} stat taskset setsid tar; do
  command -v $tool >/dev/null 2>&1 && echo "tool $tool"
done
for python in python3.14 python3.13 python3.12 python3.11 python3; do
  path=$(command -v $python 2>/dev/null) && echo "python $("$path" -c 'import sys
print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null)"
done
:"""


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """`pythons`: version → program. `libc`: glibc's version; None: another libc, or unknown."""

    folder: str
    free_bytes: int | None
    machine: Machine
    tools: frozenset[str]
    pythons: dict[str, str] = {}
    libc: tuple[int, ...] | None = None

    @property
    def sum_tool(self) -> str:
        """The program that verifies what arrives."""
        return next(tool for tool in SUMS if tool in self.tools)


def survey(shell: Shell, folder: str | None = None, stopped: Callable[[], bool] = lambda: False) -> Survey:
    """Ask what the machine is. `folder`: where to put things there; None: below the user's home.

    CannotMeasure if it cannot be reached, or lacks what every transfer needs.
    """
    reply = ask(shell, _SCRIPT, folder or "", stopped=stopped, limit_s=_SURVEY_S, what="it was asked what it is")
    facts: dict[str, str] = {}
    tools: set[str] = set()
    pythons: dict[str, str] = {}
    for line in reply.lines:
        key, _, value = line.partition(" ")
        if key == "tool":
            tools.add(value)
        elif key == "python" and " " in value:
            version, _, path = value.partition(" ")
            pythons.setdefault(version, path)
        else:
            facts[key] = value.strip()
    for needed, why in (("tar", "unpack what is sent"), (None, "verify what is sent")):
        missing = needed not in tools if needed else not tools.intersection(SUMS)
        if missing:
            raise CannotMeasure(
                f"{shell}: it has no {needed or ', '.join(SUMS)} to {why}; install it there (busybox has it)"
            )
    libc = re.search(r"([\d.]+)$", facts.get("libc", ""))
    return Survey(
        folder=facts["folder"],
        free_bytes=_number(facts, "free", 1024) or None,
        machine=_machine(facts),
        tools=frozenset(tools),
        pythons=pythons,
        libc=tuple(int(part) for part in libc[1].split(".") if part) if libc else None,
    )


def _machine(facts: dict[str, str]) -> Machine:
    cores = _number(facts, "cores") or 1
    return Machine(
        hostname=facts.get("hostname") or UNKNOWN,
        system=facts.get("system") or UNKNOWN,
        kernel=facts.get("kernel") or UNKNOWN,
        architecture=facts.get("architecture") or UNKNOWN,
        cpu=facts.get("cpu") or facts.get("hardware") or facts.get("architecture") or UNKNOWN,
        cores=cores,
        cores_total=max(cores, _number(facts, "total")),
        memory_bytes=_number(facts, "memory", 1024),
        python=UNKNOWN,
        cpu_governor=facts.get("governor") or None,
    )


def _number(facts: dict[str, str], key: str, unit: int = 1) -> int:
    text = facts.get(key, "")
    return int(text) * unit if text.isdigit() else 0
