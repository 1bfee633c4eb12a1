"""The one process of a run that speaks to Ray: `python -P ray_hub.py SOCKET NODES [ADDRESS]`.

It reserves whole nodes, starts an actor on each and relays pipes between them and the clients at SOCKET (see `ray_pipe`).
What happens goes to stdout, a line of JSON each: `waiting`, then `nodes` or `problem`. It ends, and Ray takes the nodes back,
when its stdin does. Run as a file, so that Ray sends the actor's class to the nodes, which need not have benchwright.
"""

from __future__ import annotations

import json
import os
import queue
import socket
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

CHUNK_BYTES = 1 << 18
FRAME = struct.Struct("!cI")  # kind and length; kinds: o (stdout), e (stderr), x (exit code), l (lost: why)
_ASK_S = 30.0


class Relay:
    """The actor on a node: runs commands there. One thread of the actor serves each call."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def name(self) -> tuple[str, str]:
        """The host's name, and the address by which other nodes reach it."""
        import ray

        return os.uname().nodename, ray.util.get_node_ip_address()

    def start(self, key: str, words: list[str]) -> str | None:
        """Why it could not be started, if so."""
        try:
            self._running[key] = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            return f"{words[0]}: {error.strerror}"
        return None

    def write(self, key: str, data: bytes) -> None:
        """Empty: there is no more."""
        pipe = self._running[key].stdin
        assert pipe is not None
        try:
            if data:
                pipe.write(data)
                pipe.flush()
            else:
                pipe.close()
        except OSError:
            pass  # it reads no more; its exit code says why

    def read(self, key: str) -> Iterator[tuple[str, bytes]]:
        """Output as it comes, then the exit code."""
        process, pieces = self._running[key], queue.Queue[tuple[str, bytes]](maxsize=8)

        def drain(kind: str, fd: int) -> None:
            while data := os.read(fd, CHUNK_BYTES):
                pieces.put((kind, data))
            pieces.put((kind, b""))

        assert process.stdout is not None
        assert process.stderr is not None
        for kind, pipe in (("o", process.stdout), ("e", process.stderr)):
            threading.Thread(target=drain, args=(kind, pipe.fileno()), daemon=True).start()
        ended = 0
        while ended < 2:
            kind, data = pieces.get()
            ended += not data
            if data:
                yield kind, data
        yield "x", str(process.wait()).encode()
        del self._running[key]


def whole_nodes(nodes: list[dict[str, Any]], count: int) -> list[dict[str, float]]:
    """What to ask for to get `count` whole nodes (0: all): alike ones if there are enough, else the largest."""
    made = [{kind: n["Resources"].get(kind, 0.0) for kind in ("CPU", "GPU")} for n in nodes if n["Alive"]]
    made = sorted((m for m in made if m["CPU"]), key=lambda m: (m["GPU"], m["CPU"]), reverse=True)
    count = count or len(made)
    for (cpus, gpus), number in Counter((m["CPU"], m["GPU"]) for m in made).items():
        if number >= count:
            made = [{"CPU": cpus, "GPU": gpus}] * count
            break
    return [{kind: amount for kind, amount in m.items() if amount} for m in made[:count]]


def say(**what: object) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def reserve(count: int) -> dict[str, tuple[Any, str]]:
    """Actors and addresses by the names of their nodes; waits until there are enough free nodes."""
    import ray
    from ray.util.placement_group import placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    bundles = whole_nodes(ray.nodes(), count)
    if len(bundles) < max(count, 1):
        raise RuntimeError(f"the cluster has {len(bundles)} nodes with CPUs, and {count} were asked for")
    group = placement_group(bundles, strategy="STRICT_SPREAD")
    waited = 0.0
    while not group.wait(timeout_seconds=1.0 if not waited else _ASK_S):
        waited += _ASK_S
        free, total = ray.available_resources(), ray.cluster_resources()
        say(waiting=f"{free.get('CPU', 0):g} of {total.get('CPU', 0):g} CPUs are free")
    relay = ray.remote(Relay)
    actors = [
        relay.options(
            **{f"num_{kind.lower()}s": amount for kind, amount in bundle.items()},
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=place),
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=100,
        ).remote()
        for place, bundle in enumerate(bundles)
    ]
    names = ray.get([actor.name.remote() for actor in actors])
    seen: Counter[str] = Counter()
    named = {}
    for (name, address), actor in zip(names, actors, strict=True):
        seen[name] += 1
        named[name if seen[name] == 1 else f"{name}-{seen[name]}"] = (actor, address)
    return named


class RelayedCommand:
    """One command for one client."""

    def __init__(self, client: socket.socket, nodes: dict[str, tuple[Any, str]]) -> None:
        self._client = client
        self._nodes = nodes
        self._key = os.urandom(8).hex()

    def run(self) -> None:
        with self._client:
            try:
                file = self._client.makefile("rb")
                order = json.loads(file.readline())
                self._relay(self._nodes[order["node"]][0], order["words"], file)
            except Exception as error:  # of Ray: the node or its actor is gone
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                self._send("l", f"{type(error).__name__}: {lines[0] if lines else ''}".encode())

    def _relay(self, actor: Any, words: list[str], file: Any) -> None:
        import ray

        if (problem := ray.get(actor.start.remote(self._key, words))) is not None:
            self._send("e", f"{problem}\n".encode())
            self._send("x", b"127")
            return

        def feed() -> None:
            try:
                while True:
                    data = file.read1(CHUNK_BYTES)
                    ray.get(actor.write.remote(self._key, data))
                    if not data:
                        return
            except Exception:
                return  # reading its output fails as well, and says why

        threading.Thread(target=feed, daemon=True).start()
        for piece in actor.read.options(num_returns="streaming").remote(self._key):
            self._send(*ray.get(piece))

    def _send(self, kind: str, data: bytes) -> None:
        try:
            self._client.sendall(FRAME.pack(kind.encode(), len(data)) + data)
        except OSError:
            pass  # the client was killed; the end of its input ends what it runs


def main(words: list[str]) -> int:
    path, count, *address = words
    import ray

    try:
        ray.init(
            address=address[0] if address else "auto",
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
        )
        nodes = reserve(int(count))
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        say(problem=lines[0] if lines else type(error).__name__)
        return 1
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    say(nodes={name: address for name, (_, address) in nodes.items()})

    def serve() -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=RelayedCommand(client, nodes).run, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    while os.read(0, 1024):
        pass
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
