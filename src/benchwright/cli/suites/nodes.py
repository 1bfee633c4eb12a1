"""`benchwright nodes`."""

from __future__ import annotations

import json
import shutil

import click

_EXAMPLES = """\b
Examples:
  benchwright nodes --on ssh:pi@10.0.0.7
  benchwright nodes --system cluster.yaml --clean
"""


@click.command(epilog=_EXAMPLES)
@click.option("--on", metavar="ssh:HOST", help="One machine: ssh:[USER@]HOST[:PORT].")
@click.option("--system", metavar="FILE", help="The nodes of a system file.")
@click.option("--remote-dir", metavar="DIR", help="Folder that files were sent to, if it was given then.")
@click.option("--clean", is_flag=True, help="Remove what was sent.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(on: str | None, system: str | None, remote_dir: str | None, clean: bool, as_json: bool) -> int:
    """Show what was sent to machines that share no file system with this one, or remove it.

    Exit code: 0 success, 1 a machine could not be reached.
    """
    from benchwright.core.errors import CannotMeasure, InvalidInput
    from benchwright.core.node.system import System
    from benchwright.executors.ssh_connection import SshConnection
    from benchwright.executors.ssh_host import node_named
    from benchwright.executors.transfer.sent import remove_sent_files, sent_files
    from benchwright.kinds.suite.system_file import read_system

    if (on is None) == (system is None):
        raise InvalidInput(
            "name a machine, or a file with nodes", where="nodes", remedy="give --on ssh:HOST or --system FILE"
        )
    described = read_system(system)[0] if system is not None else System()
    if on is not None:
        described = System(nodes=(node_named(on.removeprefix("ssh:")),))
    rows = []
    for node in described.nodes:
        if node.local:
            continue
        connection = SshConnection(node, described.sshkey, shutil.which("python3") or "python3")
        row: dict[str, object] = {"node": node.name}
        try:
            found = sent_files(connection, remote_dir)
            row |= {"folder": found.folder, "bytes": found.size, "trees": found.trees}
            if clean:
                remove_sent_files(connection, remote_dir)
                row["removed"] = True
        except CannotMeasure as error:
            row["problem"] = str(error)
        rows.append(row)
    click.echo(json.dumps({"nodes": rows}, indent=2) if as_json else "\n".join(map(_line, rows)))
    return 1 if any("problem" in row for row in rows) else 0


def _line(row: dict[str, object]) -> str:
    if "problem" in row:
        return str(row["problem"])
    if not row["bytes"]:
        return f"{row['node']}: nothing was sent to {row['folder']}"
    size = float(str(row["bytes"])) / 1e6
    verb, where = ("removed", "from") if "removed" in row else ("has", "in")
    return f"{row['node']}: {verb} {size:,.1f} MB {where} {row['folder']}"
