"""`benchwright devices --sent`."""

from __future__ import annotations

import shutil

from benchwright.cli.answer import answer
from benchwright.core.errors import CannotMeasure, InvalidInput
from benchwright.core.system import System
from benchwright.executors.ssh_host import node_on
from benchwright.executors.transfer.sent import remove_sent_files, sent_files
from benchwright.executors.via_connection import connection_to
from benchwright.kinds.suite.system_file import read_system


def show_sent(on: str | None, system: str | None, folder: str | None, *, clean: bool) -> int:
    """Lists files sent to machines that share no file system with this one, or removes them; 1 if one could not be reached."""
    if (on is None) == (system is None):
        raise InvalidInput(
            "name a machine, or a file with nodes", where="devices --sent", remedy="give --on ssh:HOST or --system FILE"
        )
    described = read_system(system)[0] if system is not None else System()
    if on is not None:
        described = System(nodes=(node_on(on),))
    rows = []
    for node in described.nodes:
        if node.local:
            continue
        connection = connection_to(node, described.sshkey, shutil.which("python3") or "python3")
        row: dict[str, object] = {"node": node.name}
        try:
            found = sent_files(connection, folder)
            row |= {"folder": found.folder, "bytes": found.size, "trees": found.trees}
            if clean:
                remove_sent_files(connection, folder)
                row["removed"] = True
        except CannotMeasure as error:
            row["problem"] = str(error)
        rows.append(row)
    answer(lambda: {"nodes": rows}, lambda: "\n".join(map(_line, rows)))
    return 1 if any("problem" in row for row in rows) else 0


def _line(row: dict[str, object]) -> str:
    if "problem" in row:
        return str(row["problem"])
    if not row["bytes"]:
        return f"{row['node']}: nothing was sent to {row['folder']}"
    size = float(str(row["bytes"])) / 1e6
    verb, where = ("removed", "from") if "removed" in row else ("has", "in")
    return f"{row['node']}: {verb} {size:,.1f} MB {where} {row['folder']}"
