"""`benchwright devices`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from benchwright import runner
from benchwright.cli.answer import answer, json_option
from benchwright.cli.options import options
from benchwright.cli.spinner import Working
from benchwright.cli.terminal import terminal_width
from benchwright.core.errors import InvalidInput
from benchwright.core.quantities import format_bytes
from benchwright.report.document import OPTIONAL, Cell, Column, Field, table_of, word
from benchwright.report.text.layout import left_out_words, table_lines, wrapped
from benchwright.report.text.one_line import one_line
from benchwright.runs.base_folder import BaseFolder

if TYPE_CHECKING:
    from benchwright.runner.devices import Lab, LabDevice

_EXAMPLES = """\b
Examples:
  benchwright devices
  benchwright devices --system lab.yaml --json
  benchwright devices --sent --on ssh:pi@10.0.0.7 --clean
  benchwright run squeezenet.json --program ./bench --devices emulator-5554
"""


@click.command(epilog=_EXAMPLES)
@json_option()
@click.option(
    "--system",
    metavar="FILE",
    help="System file whose nodes are asked too.  [default: $BENCHWRIGHT_SYSTEM]",
)
@click.option(
    "--sent",
    is_flag=True,
    help="Show instead what was sent to machines that share no file system with this one: --on, or the nodes of --system.",
)
@click.option("--clean", is_flag=True, help="With --sent: remove it.")
@click.option("--on", metavar="ssh:HOST", help="With --sent: one machine, ssh:[USER@]HOST[:PORT].")
@click.option("--remote-dir", metavar="DIR", help="With --sent: folder that files were sent to, if it was given then.")
@options("android_dir", "base")
def command(
    system: str | None,
    sent: bool,
    clean: bool,
    on: str | None,
    remote_dir: str | None,
    android_dir: str | None,
    base: str | None,
) -> int:
    """List what can be measured on, and its health: this machine, nodes reached by ssh, attached Android devices.

    Nodes of a cluster that a killed run still holds are released.

    --devices takes what the column NAME shows, or HASH; --on takes what the column ON shows. Exit code: 0 all can be used, 1 some cannot.
    """
    if sent:
        from benchwright.cli.suites.nodes import show_sent

        return show_sent(on, system, remote_dir, clean=clean)
    for given, flag in ((clean, "--clean"), (on, "--on"), (remote_dir, "--remote-dir")):
        if given:
            raise InvalidInput("is about what was sent to machines", where=flag, remedy="add --sent, or leave it out")

    chosen = BaseFolder.choose(base, os.environ)
    folder = chosen.path
    if ended := runner.devices.end_lost_allocations(chosen.runs):
        click.echo(f"released nodes that killed runs still held: {', '.join(ended)}", err=True)
    known = runner.devices.known_system(system, os.environ)
    with Working("asking the devices"):
        lab = runner.devices.look_around(known, str(folder), on_phones=android_dir)
    answer(lambda: {"devices": lab.devices, "problem": lab.problem}, lambda: _text(lab))
    return 0 if all(device.is_ready for device in lab.devices) else 1


def _text(lab: Lab) -> str:
    fields: list[Field[LabDevice]] = [
        Field(Column("on"), lambda device: word(one_line(device.on))),
        Field(Column("state"), lambda device: word(device.state)),
        Field(Column("name"), lambda device: word(one_line(_name(device)))),
        Field(Column("hash", drop_priority=OPTIONAL), lambda device: word(one_line(device.hash))),
        Field(Column("model", drop_priority=6), lambda device: Cell(one_line(device.model or ""))),
        Field(Column("system", drop_priority=5), lambda device: Cell(one_line(device.system or ""))),
        Field(Column("ABI", drop_priority=4), lambda device: Cell(device.abi or "")),
        Field(Column("battery", right=True, drop_priority=2), lambda device: Cell(_battery(device))),
        Field(Column("temp.", right=True, drop_priority=3), lambda device: Cell(_temperature(device))),
        Field(Column("free", right=True), lambda device: Cell(_free(device))),
    ]
    table, width = table_of(fields, lab.devices), terminal_width()
    lines = [*table_lines(table, width), *left_out_words([table], width, "--json")]
    remedies = [f"{device.on}: {device.remedy}" for device in lab.devices if device.remedy]
    remedies += [f"Android devices: {lab.problem}"] if lab.problem else []
    return "\n".join([*lines, *(line for text in remedies for line in wrapped(text, width, "   "))])


def _name(device: LabDevice) -> str:
    """The shortest that --devices takes: a host's name, since that of its platform is the whole platform."""
    return device.name or "" if device.kind == "android" else device.hash


def _battery(device: LabDevice) -> str:
    level = device.battery.level_percent if device.battery is not None else None
    return "" if level is None else f"{level:.0f} %"


def _temperature(device: LabDevice) -> str:
    if device.throttling not in (None, "none"):
        return "throttles"
    return "" if device.temperature_c is None else f"{device.temperature_c:.0f} °C"


def _free(device: LabDevice) -> str:
    return "" if device.free_bytes is None else format_bytes(device.free_bytes)
