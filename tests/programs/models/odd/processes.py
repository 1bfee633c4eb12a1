"""Starts processes in every way, and ends in an unusual one."""

import atexit
import multiprocessing
import os
import signal
import subprocess
import sys
import threading

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def __call__(self, x):
        return self.layer(x)


class Late(Exception):
    pass


def child(queue):
    queue.put((__name__, tuple(Net()(torch.ones(1, 4)).shape)))


def too_late(number, frame):
    raise Late


def fail():
    raise RuntimeError("in a thread")


@atexit.register
def never():
    print("not with os._exit")


if __name__ == "__main__":
    print(sys.argv, __file__, __spec__, __package__, __doc__, type(__loader__).__name__, sys.path[0])
    net, x = Net(), torch.ones(2, 4)
    net(x)
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.Queue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        answer = queue.get(timeout=100)
        process.join()  # it may print as it ends
        print(method, answer)
    print(subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True).stdout)
    forked = os.fork()
    if not forked:
        os._exit(3)
    print(os.waitpid(forked, 0)[1], sys.stdin.read())
    signal.signal(signal.SIGALRM, too_late)
    for _ in range(100):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.001)
            while True:
                net(x)
        except Late:
            pass
    print("late, each time", net(torch.ones(3, 4)).shape)
    thread = threading.Thread(target=fail, name="one")
    thread.start()
    thread.join()
    sys.stdout.flush()
    os._exit(5)
