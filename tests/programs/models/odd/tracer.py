"""Traces its own calls, and leaves with a word on stderr while something registered for the end fails."""

import atexit
import sys

import torch
from torch import nn

net, x = nn.Sequential(nn.Linear(4, 2)), torch.ones(1, 4)
seen = []


def tracer(frame, event, argument):
    seen.append((event, frame.f_code.co_name))


sys.settrace(tracer)
net(x)
nn.Linear(2, 2)
sys.settrace(None)
print(*seen, sep="\n")
print(nn.Linear(4, 3)(x).shape)


class AtTheEnd:
    def __call__(self):
        raise ValueError("at the end")

    def __repr__(self):
        return "<at the end>"


atexit.register(AtTheEnd())
sys.exit("a last word")
