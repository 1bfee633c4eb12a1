"""Looks at its own stack: tracebacks, warnings that name a caller, frames, and how deep it may go."""

import inspect
import sys
import traceback
import warnings

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x, do=None):
        if do == "fail":
            raise ValueError("in forward")
        if do == "warn":
            warnings.warn("of the caller's caller", stacklevel=4)
        if do == "look":
            print([each.function for each in inspect.stack()][:4], sys._getframe(3).f_code.co_name)
        return self.layer(x)


class OwnCall(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.__hidden = 3

    def __call__(self, x, *rest, fail=False, **more):
        """Does not come to nn.Module's."""
        if fail:
            raise KeyError("its own")
        print(self.__hidden, [each.function for each in inspect.stack()][:2], super().__class__.__name__)
        return self.layer(x)


class ByForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        y = self.layer(x)
        if x.shape[0] == 3:
            raise RuntimeError("after a part")
        return y


class Again(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x, times):
        return self(x, times - 1) if times else self.layer(x)


class Unready(nn.Module):
    def __init__(self):
        pass

    def forward(self, x):
        return x


class Secretive(Exception):
    def __str__(self):
        print("__str__")
        return "told"


class Fails(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        raise Secretive(1)


def attempt(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception:
        traceback.print_exc()


def warned(net, x):
    return net(x, "warn")


def deepest(attempt_at):
    """The most that does not end in a RecursionError."""
    low, high = 0, 2000
    while high - low > 1:
        middle = (low + high) // 2
        try:
            attempt_at(middle)
            low = middle
        except RecursionError:
            high = middle
    return low


def down(times, then):
    return down(times - 1, then) if times else then()


x, net, own, by_forward, again = torch.ones(1, 4), Net(), OwnCall(), ByForward(), Again()
attempt(net, x, "fail")
warned(net, x)
net(x, "look")
own(x)
attempt(own, x, fail=True)
print(inspect.signature(OwnCall.__call__), OwnCall.__call__.__doc__, inspect.getsource(OwnCall.__call__))
by_forward.forward(x)
by_forward.forward(x)
attempt(by_forward.forward, torch.ones(3, 4))
attempt(Unready(), x)
attempt(nn.Module(), x)
try:
    Fails()(x)
except Secretive:
    print("caught")
nested = nn.Linear(4, 4)
for _ in range(150):
    nested = nn.Sequential(nested)
print(nested(x).shape, nested.double()(x.double()).dtype)
print(deepest(lambda times: down(times, lambda: None)), deepest(lambda times: again(x, times)))
print(deepest(lambda times: down(times, lambda: again(x, 0))))
print(sorted(name for name in globals() if not name.startswith("__")))
net(x, "fail")
