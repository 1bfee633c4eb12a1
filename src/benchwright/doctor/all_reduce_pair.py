"""The program of one of two nodes that add up a vector together, over Gloo: `RANK PORT HOST…`. Sent as text: it stands alone.

The first node listens; the second tries the HOSTs of the first until one answers. Prints the seconds of an all-reduce, for each of
some batches. Gloo uses the interface that leads to the other node: a host name may well mean a loopback address.
"""

import fcntl
import os
import socket
import struct
import sys
import time

import torch

ELEMENTS = 2_000_000  # of 4 bytes each
BATCHES, IN_A_BATCH = 8, 5
PATIENCE_S = 60.0


def interface_of(address: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            try:
                found = fcntl.ioctl(asked.fileno(), 0x8915, struct.pack("256s", name.encode()[:15]))  # SIOCGIFADDR
            except OSError:
                continue  # it has no such address
            if socket.inet_ntoa(found[20:24]) == address:
                return name
    return "lo"


def meet(rank: int, port: int, hosts: "list[str]") -> "tuple[str, str]":
    """The address of the first node, and our own on the way to the other."""
    deadline = time.monotonic() + PATIENCE_S
    if rank == 0:
        with socket.create_server(("", port)) as listener:
            listener.settimeout(PATIENCE_S)
            connection, _ = listener.accept()
            with connection:
                own = connection.getsockname()[0]
        return own, own
    while True:
        for host in hosts:
            try:
                with socket.create_connection((host, port), timeout=5) as connection:
                    return connection.getpeername()[0], connection.getsockname()[0]
            except OSError as error:
                if time.monotonic() > deadline:
                    sys.exit(f"{host}:{port} does not answer: {error}")
        time.sleep(0.1)


def main(words: "list[str]") -> None:
    rank, port = int(words[0]), int(words[1])
    host, own = meet(rank, port, words[2:])
    os.environ["GLOO_SOCKET_IFNAME"] = interface_of(own)
    dist = torch.distributed
    dist.init_process_group("gloo", init_method=f"tcp://{host}:{port + 1}", rank=rank, world_size=2)
    vector = torch.zeros(ELEMENTS)
    for _ in range(IN_A_BATCH):
        dist.all_reduce(vector)
    seconds = []
    for _ in range(BATCHES):
        dist.barrier()
        began = time.perf_counter()
        for _ in range(IN_A_BATCH):
            dist.all_reduce(vector)
        seconds.append((time.perf_counter() - began) / IN_A_BATCH)
    sys.stdout.write("all_reduce_s " + " ".join(map(str, seconds)) + "\n")
    sys.stdout.flush()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
