"""Inputs that notice being looked at, and tensors that have no shape."""

import dataclasses
import enum
import warnings
from collections.abc import Mapping
from unittest.mock import MagicMock

import torch
from torch import nn

warnings.simplefilter("ignore")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x, odd=None):
        return self.layer(x)


class Noisy:
    def __getattr__(self, name):
        print("__getattr__", name)
        raise AttributeError(name)

    def __repr__(self):
        print("__repr__")
        return "noisy"

    def __eq__(self, other):
        print("__eq__")
        return False

    def __hash__(self):
        return 1

    def __len__(self):
        print("__len__")
        return 3

    def __iter__(self):
        print("__iter__")
        return iter(())

    def __bool__(self):
        print("__bool__")
        return True


class Recursing:
    def __getattr__(self, name):
        return getattr(self, name + "_")


class Disguised:
    @property
    def __class__(self):
        print("__class__")
        return dict


class Watched:
    def __getattribute__(self, name):
        print("__getattribute__", name)
        return object.__getattribute__(self, name)


class LazyDict(dict):
    def __getitem__(self, key):
        print("loads", key)
        return dict.__getitem__(self, key)

    def __iter__(self):
        print("iterates")
        return dict.__iter__(self)


class LazyMapping(Mapping):
    def __getitem__(self, key):
        print("loads", key)
        return 1

    def __iter__(self):
        print("iterates")
        return iter("ab")

    def __len__(self):
        return 2


class LoudList(list):
    def __iter__(self):
        print("iterates")
        return list.__iter__(self)

    def __len__(self):
        print("counts")
        return list.__len__(self)


class LoudInt(int):
    def __eq__(self, other):
        print("compares")
        return int.__eq__(self, other)

    def __hash__(self):
        return 1


class Slots:
    __slots__ = ("absent", "present")

    def __init__(self):
        self.present = 1


class LikeATensor:
    @property
    def shape(self):
        print("shape")
        return (1,)

    @property
    def dtype(self):
        print("dtype")
        return "float"


@dataclasses.dataclass
class Record:
    number: int = 1

    def __getattribute__(self, name):
        print("record", name)
        return object.__getattribute__(self, name)


class Colour(enum.Enum):
    RED = 1

    @property
    def name(self):
        print("name")
        return "red"


class Finalised:
    def __del__(self):
        print("finalised")


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        print("function", getattr(func, "__name__", func))
        return super().__torch_function__(func, types, args, kwargs or {})


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        print("dispatch", func)
        return func(*(each.inner if isinstance(each, cls) else each for each in args), **(kwargs or {}))


def endless(kind):
    made = kind()
    if kind is list:
        made.append(made)
    else:
        made["itself"] = made
    return made


def deep():
    made = []
    for _ in range(5000):
        made = [made]
    return made


def numbers():
    print("begun")
    yield 1


net, x = Net(), torch.ones(1, 4)
mock, generator, iterator = MagicMock(), numbers(), iter([1, 2])
for odd in (
    *(Noisy(), Recursing(), Disguised(), Watched(), LazyDict(a=1, b=x), LazyMapping(), LoudList([1, x])),
    *({Noisy(): 1}, {Noisy()}, LoudInt(3), Slots(), LikeATensor(), Record(), Colour.RED, mock, generator, iterator),
    *(map(print, [1]), endless(list), endless(dict), deep(), Finalised()),
):
    print(type(odd).__name__, tuple(net(x, odd).shape))
    del odd
print(mock.mock_calls, list(generator), list(iterator))

parts = [torch.ones(2, 4), torch.ones(3, 4)]
print(net(torch.nested.nested_tensor(parts)).size(0))
print(net(torch.nested.nested_tensor(parts, layout=torch.jagged)).size(0))
print(net([torch.nested.nested_tensor(parts)][0]).is_nested)
print(type(net(torch.ones(3, 4).as_subclass(Loud))).__name__)
print(net(Wrapped(torch.ones(5, 4))).shape)
loud = nn.Linear(4, 2)
loud.weight = nn.Parameter(torch.ones(2, 4).as_subclass(Loud))
print(loud(x).shape)
