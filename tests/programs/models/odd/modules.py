"""Modules that notice being looked at, and modes in which torch itself looks at modules."""

import copy
import gc
import pickle
import warnings
import weakref

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

warnings.simplefilter("ignore")
torch.manual_seed(3)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def forward(self, x):
        return self.layer(x).relu()


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        print("operator", func)
        return func(*args, **(kwargs or {}))


class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        print("function", getattr(func, "__name__", func))
        return func(*args, **(kwargs or {}))


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def __getattr__(self, name):
        print("__getattr__", name)
        return super().__getattr__(name)

    def parameters(self, recurse=True):
        print("parameters")
        return super().parameters(recurse)

    def named_modules(self, *args, **kwargs):
        print("named_modules")
        return super().named_modules(*args, **kwargs)

    def modules(self):
        print("modules")
        return super().modules()

    def __eq__(self, other):
        print("__eq__")
        return self is other

    def __hash__(self):
        print("__hash__")
        return 1

    def __repr__(self):
        print("__repr__")
        return "noisy"

    def __len__(self):
        print("__len__")
        return 1

    def forward(self, x):
        print("forward")
        return vars(self)["_modules"]["layer"](x)


class WithoutState(nn.Module):
    def forward(self, x):
        return x + 1

    def state_dict(self, *args, **kwargs):
        print("state_dict")
        return {}


class Settings:
    def __getattr__(self, name):
        print("setting", name)
        raise AttributeError(name)


SETTINGS = Settings()


class Configured(nn.Module):
    __slots__ = ("unset",)

    def __init__(self):
        super().__init__()
        self.layer, self.settings = nn.Linear(4, 2), SETTINGS

    def forward(self, x):
        return self.layer(x) if SETTINGS is not None else None


class InSteps(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 2)

    def __call__(self, x):
        for _ in range(2):
            yield self.layer(x)


net, x = Net(), torch.ones(3, 4)
for mode in (Dispatched, Functions):
    with mode():
        Net()(x)
        net(torch.ones(2, 4))
noisy = Noisy()
noisy(x)
noisy(torch.ones(7, 4))
gone = weakref.ref(noisy)
del noisy
gc.collect()
print(gone(), WithoutState()(x).shape, Configured()(x).shape, len(list(InSteps()(x))))

with torch.inference_mode():
    print(net(x).is_inference())
with torch.autocast("cpu", dtype=torch.bfloat16):
    print(net(x).dtype)
weights = dict(net.named_parameters())
print(vmap(net)(x).shape, functional_call(net, weights, (x,)).shape)
print(grad(lambda given: functional_call(net, given, (x,)).sum())(weights)["layer.weight"].shape)
features = []
hook = net.layer.register_forward_hook(lambda module, inputs, output: features.append(output))
net(x)
hook.remove()
print(len(features), features[0].device, features[0].shape)
traced = torch.jit.trace(net, x)
print(str(traced.graph).count("aten::"), traced(x).shape, torch.jit.script(net)(x).shape)
graph = torch.fx.symbolic_trace(net)
print(graph.code.strip(), graph(x).shape)
print(len(pickle.dumps(net)), copy.deepcopy(net)(x).shape)
with torch.device("meta"):
    print(nn.Linear(4, 2)(torch.ones(1, 4)).device)
with torch.profiler.profile() as profile:
    Net()(x)
print(sorted((each.key, each.count) for each in profile.key_averages() if each.key.startswith("aten::")))
net(x).sum().backward()
print(net.layer.weight.grad.shape, torch.rand(2))
