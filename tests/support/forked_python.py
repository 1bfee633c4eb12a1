"""`python -m benchmodels` in processes that are forked from one that has imported torch, which takes two seconds.

They are forked while Python imports `site`, before it looks at what to run: no frame, argument or path tells them from a
process started afresh. What matters while Python starts does not change, such as its options and PYTHONPATH.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parents[2] / "src"
COVERAGE = "COVERAGE_PROCESS_CONFIG"  # a process is measured from its start, or not at all
CONTROL, IMPORTS = "FORKED_PYTHON_CONTROL", "FORKED_PYTHON_IMPORTS"
SERVER = '''
import gc, importlib, json, os, socket, sys
for name in os.environ["FORKED_PYTHON_IMPORTS"].split():
    importlib.import_module(name)
gc.collect()
gc.freeze()  # or each process, when it ends, goes through all that torch has made

def become(order):
    os.chdir(order["cwd"])
    for number, path in enumerate(order["streams"]):
        fd = os.open(path, os.O_RDWR | os.O_APPEND)
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(order["env"])
    sys.path.remove(os.path.dirname(__file__))
    sys.argv[1:] = order["argv"]
    sys.orig_argv = [sys.executable, "-m", "benchmodels", *order["argv"]]
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    if order["plainly"]:
        import runpy
        runpy._run_module_as_main = lambda name, alter: plainly()

def plainly():
    """As `python FILE` does, but for a frame of ours."""
    del sys.argv[0]
    sys.orig_argv = [sys.executable, *sys.argv]
    sys.path[0] = os.path.dirname(os.path.realpath(sys.argv[0]))
    names = sys.modules["__main__"].__dict__
    names["__file__"] = sys.argv[0]
    with open(sys.argv[0]) as file:
        exec(compile(file.read(), sys.argv[0], "exec", dont_inherit=True), names)

def serve(control):
    """Returns in each forked process."""
    for line in control.makefile("rb"):
        child = os.fork()
        if child == 0:
            control.close()
            return become(json.loads(line))
        control.sendall(b"%d\\n" % child)
        control.sendall(b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os._exit(0)

serve(socket.socket(fileno=int(os.environ["FORKED_PYTHON_CONTROL"])))
'''


class ForkedPython:
    """Ends with the process that made it; `close` ends it earlier."""

    def __init__(self, folder: Path, *imports: str) -> None:
        self._folder = folder
        self._imports = ("torch", *imports)
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(SERVER)
        self._servers: dict[bool, tuple[subprocess.Popen[bytes], socket.socket]] = {}

    def run(
        self,
        *argv: str,
        env: Mapping[str, str],
        cwd: Path,
        input: str = "",
        timeout: float = 600,
        plainly: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """`python -m benchmodels ARGV`, or `python ARGV` if `plainly`."""
        control = self._server(COVERAGE in env)
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            streams = [Path(folder, name) for name in ("in", "out", "err")]
            for path in streams:
                path.write_text(input if path.name == "in" else "")
            order = {"argv": argv, "env": dict(env), "cwd": str(cwd), "streams": [*map(str, streams)]}
            control.settimeout(timeout)
            control.sendall(json.dumps({**order, "plainly": plainly}).encode() + b"\n")
            lines = control.makefile("rb")
            child = int(lines.readline())
            try:
                code = int(lines.readline())
            except TimeoutError:
                os.kill(child, 9)
                self.close()
                raise
            out, err = (path.read_text(errors="replace") for path in streams[1:])
        return subprocess.CompletedProcess(argv, code, out, err)

    def _server(self, measured: bool) -> socket.socket:
        if measured not in self._servers:
            ours, its = socket.socketpair()
            path = os.pathsep.join(map(str, (self._folder, SOURCES)))
            env = {**os.environ, "PYTHONPATH": path, CONTROL: str(its.fileno())}
            env[IMPORTS] = " ".join(self._imports)
            command: list[Any] = [sys.executable, "-m", "benchmodels"]
            with its:
                server = subprocess.Popen(command, env=env, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)
            self._servers[measured] = server, ours
        return self._servers[measured][1]

    def close(self) -> None:
        for server, control in self._servers.values():
            control.close()
            server.wait()
        self._servers.clear()
