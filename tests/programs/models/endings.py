"""Calls a model and then ends as its argument says."""

import os
import sys

import torch

model = torch.nn.Linear(4, 2)
how = sys.argv[1]


def deep():
    if how == "in_model":
        model(torch.ones(1, 5))
    raise ValueError("on purpose")


model(torch.ones(3, 4))
if how == "os_exit":
    print("leaving", flush=True)
    os._exit(9)
elif how == "kill":
    os.kill(os.getpid(), 9)
elif how == "fork":
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)
        model(torch.ones(3, 4))
        torch.nn.Linear(4, 3)(torch.ones(6, 4))
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    model(torch.ones(3, 4))
elif how == "late":
    import atexit

    atexit.register(lambda: model(torch.ones(8, 4)))
    sys.exit(7)
else:
    deep()
