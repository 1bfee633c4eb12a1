"""Runs a command on a node through the hub of a run: `python -P ray_pipe.py SOCKET NODE COMMAND…` (see `ray_hub`).

Stdin, stdout, stderr and the exit code are the command's. Exit code 1, with a line on stderr: the node was lost.
"""

import json
import os
import socket
import struct
import sys
import threading

FRAME = struct.Struct("!cI")


def feed(hub: socket.socket) -> None:
    try:
        while data := os.read(0, 1 << 16):
            hub.sendall(data)
        hub.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def main(words: "list[str]") -> int:
    path, node, *command = words
    hub = socket.socket(socket.AF_UNIX)
    hub.connect(path)
    hub.sendall(json.dumps({"node": node, "words": command}).encode() + b"\n")
    threading.Thread(target=feed, args=(hub,), daemon=True).start()
    frames = hub.makefile("rb")
    while head := frames.read(FRAME.size):
        kind, length = FRAME.unpack(head)
        data = frames.read(length)
        if kind == b"x":
            code = int(data)
            return code if code >= 0 else 128 - code
        if kind == b"l":
            sys.stderr.write(f"ray: {data.decode(errors='replace')}\n")
            return 1
        view, fd = memoryview(data), 1 if kind == b"o" else 2
        while view:
            view = view[os.write(fd, view) :]
    sys.stderr.write("ray: the connection to the cluster was lost\n")
    return 1


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except OSError as error:
        sys.stderr.write(f"ray: the hub of this run is gone: {error}\n")
        status = 1
    os._exit(status)
