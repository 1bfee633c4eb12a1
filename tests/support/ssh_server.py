"""A real ssh server for tests: run as the current user on a free port, with keys made for it."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from processes import kill

from benchwright.core.system import Node, System

SSHD = "/usr/sbin/sshd"
_CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
"""


class SshServer:
    """`folder` holds keys and settings; `client` is the command that knows the server's host key.

    Every address of 127.0.0.0/8 is this machine, but only 127.0.0.1 is known to be.
    """

    def __init__(self, folder: Path, address: str = "127.0.0.1") -> None:
        self.folder = folder
        self.address = address
        with socket.socket() as free:
            free.bind((address, 0))
            self.port = int(free.getsockname()[1])
        for name in ("host_key", "key", "other_key"):
            self._call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name))
        host_key = (folder / "host_key.pub").read_text()
        (folder / "known_hosts").write_text(f"[{address}]:{self.port} {host_key}")
        (folder / "client").write_text(f"UserKnownHostsFile {folder}/known_hosts\nGlobalKnownHostsFile none\n")
        (folder / "server").write_text(_CONFIG.format(port=self.port, folder=folder, address=address))
        self.client = ("ssh", "-F", str(folder / "client"))
        self._server: subprocess.Popen[bytes] | None = None

    def _call(self, *argv: str) -> None:
        subprocess.run(argv, check=True, capture_output=True)

    def start(self) -> None:
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # where root's server shuts its parser in
        self._log = open(self.folder / "log", "wb")  # noqa: SIM115
        self._server = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", str(self.folder / "server")], stderr=self._log, start_new_session=True
        )
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            try:
                socket.create_connection((self.address, self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise AssertionError((self.folder / "log").read_text())

    def stop(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait()
            self._log.close()

    def connections(self) -> list[int]:
        """The server's processes that serve one connection each: the first for each one."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
            except OSError:
                continue
            if words and self._server is not None and int(words[1]) == self._server.pid and words[0] != "Z":
                found.append(int(entry.name))
        return found

    def cut_connections(self) -> None:
        """As if the network went away, seen from the client."""
        kill(*self.connections())

    def node(self, name: str = "far", **fields: object) -> Node:
        settings = {"ip": self.address, "port": self.port, "user": getpass.getuser(), **fields}
        return Node(name=name, **settings)  # type: ignore[arg-type]

    def system(self, *names: str, key: str = "key") -> System:
        """Nodes that are all this one machine, and yet are reached by ssh."""
        here = Node(name="here", ip="localhost", local=True, main=True)
        return System(nodes=(here, *(self.node(n) for n in names or ("far",))), sshkey=str(self.folder / key))


def start_ssh_server(folder: Path, address: str = "127.0.0.1", login: str | None = None) -> SshServer:
    """Skips the test where there is no ssh server to be had. `login`: see `another_home`."""
    if not os.access(SSHD, os.X_OK) or shutil.which("ssh") is None:
        pytest.skip("there is no ssh server on this machine (Debian: apt install openssh-server)")
    server = SshServer(folder, address)
    if login is not None:
        (folder / "login").write_text(login)
        with open(folder / "server", "a", encoding="utf-8") as settings:
            settings.write(f"ForceCommand /bin/sh {folder}/login\n")
    server.start()
    return server


def another_home(home: Path, *, programs: str = "", hidden: Sequence[Path] = ()) -> str:
    """What logins run first, so that they are like those of another machine: a home of their own, only these programs if any
    are named, and empty folders in place of `hidden` ones. Skips the test where folders cannot be hidden."""
    path = os.environ["PATH"]
    if programs:
        path = str(home / "programs")
        os.mkdir(path)
        for program in programs.split():
            os.symlink(shutil.which(program) or pytest.skip(f"there is no {program} here"), f"{path}/{program}")
    shell = shutil.which("dash") or "/bin/sh"
    run = f'exec env -i HOME={home} PATH={path} SSH_CONNECTION="$SSH_CONNECTION" {shell} -c "$SSH_ORIGINAL_COMMAND"'
    if not hidden:
        return f"{run}\n"
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("folders cannot be hidden from a login here")
    mounts = "".join(f"mount -t tmpfs none {folder} || exit 99\n" for folder in hidden)
    (home / "hidden-login").write_text(f"{mounts}cd {home}\n{run}\n")
    return f"exec unshare -rm /bin/sh {home}/hidden-login\n"
