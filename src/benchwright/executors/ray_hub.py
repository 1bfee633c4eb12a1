"""The one process of a run that speaks to Ray: `python -P ray_hub.py SOCKET NODES together|apart [ADDRESS]`.

It reserves whole nodes, starts an actor on each and relays pipes between them and the clients at SOCKET (see `ray_pipe`).
What happens goes to stdout, a line of JSON each: `waiting`, then `nodes` or `problem`. Nodes `apart` are announced as they
become free, one by one, and a line on stdin with the name of one gives it back. It ends, and Ray takes all nodes back, when
its stdin does. Run as a file, so that Ray sends the actor's class to the nodes, which need not have benchwright.
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

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

CHUNK_BYTES = 1 << 18
FRAME = struct.Struct("!cI")  # kind and length; kinds: o (stdout), e (stderr), x (exit code), l (lost: why)
_ASK_S = 30.0
_PATIENCE_S = 2.0  # for a reservation that is not needed any more


class Relay:
    """The actor on a node: runs commands there. One thread of the actor serves each call."""

    def __init__(self) -> None:
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def name(self) -> tuple[str, str]:
        """The host's name, and the address by which other nodes reach it."""
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
    """Resources to ask for to get `count` whole nodes (0: all): alike ones if there are enough, else the largest."""
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


def say_waiting() -> None:
    free, total = ray.available_resources(), ray.cluster_resources()
    say(waiting=f"{free.get('CPU', 0):g} of {total.get('CPU', 0):g} CPUs are free")


def start_actor(group: Any, place: int, bundle: dict[str, float]) -> Any:
    amounts = {f"num_{kind.lower()}s": bundle[kind] for kind in ("CPU", "GPU") if kind in bundle}
    return (
        ray.remote(Relay)
        .options(
            **amounts,
            scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=place),
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=100,
        )
        .remote()
    )


class Nodes:
    """The granted nodes: actors and addresses by name."""

    def __init__(self) -> None:
        self.actors: dict[str, Any] = {}
        self._groups: dict[str, Any] = {}
        self._given_back: set[str] = set()

    def add(self, actors: list[tuple[Any, Any]]) -> None:
        """Actors, each with its placement group; announces them. Nodes of one host have numbers."""
        new = {}
        for (actor, group), (host, address) in zip(
            actors, ray.get([actor.name.remote() for actor, _ in actors]), strict=True
        ):
            name, number = host, 1
            while name in self.actors:
                number += 1
                name = f"{host}-{number}"
            self.actors[name], self._groups[name], new[name] = actor, group, address
        say(nodes=new)

    def give_back(self, name: str) -> None:
        if name in self.actors and name not in self._given_back:
            self._given_back.add(name)
            try:
                ray.kill(self.actors[name])
                remove_placement_group(self._groups[name])
            except Exception:
                return  # of Ray: it was lost before


def reserve_together(count: int, nodes: Nodes) -> None:
    """Waits until there are enough free nodes."""
    bundles = whole_nodes(ray.nodes(), count)
    if len(bundles) < max(count, 1):
        raise RuntimeError(f"the cluster has {len(bundles)} nodes with CPUs, and {count} were asked for")
    group = placement_group(bundles, strategy="STRICT_SPREAD")
    waited = 0.0
    while not group.wait(timeout_seconds=1.0 if not waited else _ASK_S):
        waited += _ASK_S
        say_waiting()
    nodes.add([(start_actor(group, place, bundle), group) for place, bundle in enumerate(bundles)])


def reserve_apart(count: int, nodes: Nodes) -> None:
    """Asks for every node of the cluster by itself, and takes the first `count` that are free."""
    asked = []
    for node in ray.nodes():
        own = {kind: node["Resources"].get(kind, 0.0) for kind in ("CPU", "GPU")}
        if node["Alive"] and own["CPU"]:
            bundle = {kind: amount for kind, amount in own.items() if amount}
            bundle[f"node:{node['NodeManagerAddress']}"] = 0.001  # of this node and no other
            asked.append((placement_group([bundle], strategy="STRICT_PACK"), bundle))
    if len(asked) < count:
        raise RuntimeError(f"the cluster has {len(asked)} nodes with CPUs, and {count} were asked for")
    ready = {group.ready(): (group, bundle) for group, bundle in asked}
    granted, waits_s = 0, 1.0
    while granted < count:
        done, _ = ray.wait(list(ready), num_returns=1, timeout=waits_s)
        for each in done:
            group, bundle = ready.pop(each)
            nodes.add([(start_actor(group, 0, bundle), group)])
            granted += 1
        if not done:
            waits_s = _ASK_S
            say_waiting()
    for group, _ in ready.values():
        remove_placement_group(group)


class RelayedCommand:
    """One command for one client."""

    def __init__(self, client: socket.socket, actors: dict[str, Any]) -> None:
        self._client = client
        self._actors = actors
        self._key = os.urandom(8).hex()

    def run(self) -> None:
        with self._client:
            try:
                file = self._client.makefile("rb")
                order = json.loads(file.readline())
                self._relay(self._actors[order["node"]], order["words"], file)
            except Exception as error:  # of Ray: the node or its actor is gone
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                self._send("l", f"{type(error).__name__}: {lines[0] if lines else ''}".encode())

    def _relay(self, actor: Any, words: list[str], file: Any) -> None:
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
    path, count, how, *address = words
    nodes, listener = Nodes(), socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)

    def serve() -> None:
        while True:
            client, _ = listener.accept()
            threading.Thread(target=RelayedCommand(client, nodes.actors).run, daemon=True).start()

    def obey() -> None:
        """Ends this process when nobody needs it any more, even if it still waits for nodes."""
        with open(0, "rb", closefd=False) as orders:
            for line in orders:
                nodes.give_back(line.decode().strip())
        over.set()
        if not reserved.wait(_PATIENCE_S):
            os._exit(0)

    over, reserved = threading.Event(), threading.Event()
    threading.Thread(target=serve, daemon=True).start()
    threading.Thread(target=obey, daemon=True).start()
    try:
        ray.init(
            address=address[0] if address else "auto",
            log_to_driver=False,
            logging_level="ERROR",
            configure_logging=False,
        )
        (reserve_apart if how == "apart" else reserve_together)(int(count), nodes)
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        say(problem=lines[0] if lines else type(error).__name__)
        return 1
    reserved.set()
    over.wait()
    ray.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
