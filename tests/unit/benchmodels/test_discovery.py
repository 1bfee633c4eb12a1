"""Whatever a script does to call a model, the call is found, with its inputs, and only the outermost one."""

from __future__ import annotations

import gc
import textwrap
from pathlib import Path

import pytest

from benchmodels.hooks.import_watch import error_text
from benchmodels.pytorch.models import is_internal, is_rather_on

TWO_LAYERS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
    def forward(self, x, scale=1.0):
        return self.second(torch.relu(self.first(x))) * scale
"""


def test_only_the_outermost_call_is_a_model(found):
    models = found(TWO_LAYERS + "net = Net()\nnet(x)\nnet(x)\n")
    net = models["Net"]
    assert models.classes == ["Net"]
    assert (net["parameters"], net["parameter_bytes"], net["trainable"]) == (58, 232, 58)
    assert (net["calls"], net["mode"], net["items"], net["reason"]) == (2, "inference", None, None)
    assert net["inputs"] == [{"name": "x", "shape": [3, 4], "dtype": "float32"}]
    assert (net["qualified"], net["dtype"], net["device"]) == ("__main__.Net", "float32", "cpu")
    assert (net["made_at"]["line"], net["place"]["line"]) == (11, 12)


def test_models_are_found_wherever_they_are_called(found):
    models = found(
        """
        class Pipeline:
            def __init__(self):
                self.models = {"a": nn.Linear(4, 1), "b": nn.Linear(4, 2)}
            def __call__(self, x):
                return [model(x) for model in self.models.values()]
        def helper(layer):
            return layer(x)
        Pipeline()(x)
        nn.Linear(4, 3)(x)
        helper(nn.Linear(4, 5))
        if __name__ == "__main__":
            layer = nn.Linear(4, 6)
            layer(x)
        import threading
        inside = nn.Linear(4, 7)
        thread = threading.Thread(target=inside, args=(x,))
        thread.start()
        thread.join()
        """
    )
    assert sorted(model["parameters"] // 5 for model in models.models) == [1, 2, 3, 5, 6, 7]


def test_each_shape_and_dtype_of_a_model_is_an_entry_however_the_call_is_written(found):
    models = found(
        TWO_LAYERS
        + """
net = Net()
net(x); net(x=x); net(x, 1.0); net(x, scale=1.0); net(scale=1.0, x=x)
net(x, 2.0)
net(torch.ones(5, 4))
net.double()(x.double())
"""
    )
    told = [(m["calls"], m["inputs"][0]["shape"], m["inputs"][0]["dtype"], m["objects"]) for m in models.models]
    assert told == [
        (5, [3, 4], "float32", 1),
        (1, [3, 4], "float32", 1),
        (1, [5, 4], "float32", 1),
        (1, [3, 4], "float64", 1),
    ]
    assert models.models[1]["inputs"][1] == {"name": "scale", "value": "2.0"}
    groups = [model["shape_group"] for model in models.models]
    assert groups[0] == groups[1] == groups[2] != groups[3]


def test_inputs_of_every_form_are_described(found):
    models = found(
        """
        import collections, dataclasses
        @dataclasses.dataclass
        class Batch:
            ids: torch.Tensor
            name: str = "n"
        Point = collections.namedtuple("Point", "u v")
        class Cache:
            def __init__(self):
                self.layers, self._secret = [(torch.ones(1, 2), torch.ones(1, 3))], 1
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.ones(4))
            def forward(self, pair, options, batch, *more, cache=None, **rest):
                return self.weight
        Net()((x, [x, 3]), {"mask": None, "deep": {"y": x}}, Batch(x), Point(1, x), "text", cache=Cache(), flag=True)
        """
    )
    told = {i["name"]: i.get("shape") or i["value"] for i in models["Net"]["inputs"]}
    assert told == {
        "pair.0": [3, 4], "pair.1.0": [3, 4], "pair.1.1": "3", "options.deep.y": [3, 4], "options.mask": "None",
        "batch": "<Batch>", "batch.ids": [3, 4], "batch.name": "'n'", "more.0.u": "1", "more.0.v": [3, 4],
        "more.1": "'text'", "cache": "<Cache>", "cache.layers.0.0": [1, 2], "cache.layers.0.1": [1, 3], "flag": "True",
    }  # fmt: skip


def test_a_model_that_is_changed_between_calls_is_another_one(found):
    program = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.layer = nn.Embedding(9, 4), nn.Linear(4, 4)
    def forward(self, ids): return self.layer(self.table(ids))
net, ids = Net().eval(), torch.ones(3, 2, dtype=torch.long)
net(ids); net(ids)
net.bfloat16()(ids)
net.float().layer = nn.Sequential(nn.Linear(4, 2), nn.Linear(2, 4))
net(ids); net(ids); net(ids)
"""
    for depth in (0, 1):
        models = found(program, max_depth=depth).all("Net")
        assert [(m["calls"], m["dtype"], m["parameters"]) for m in models] == [
            (2, "float32", 56), (1, "bfloat16", 56), (3, "float32", 58),
        ]  # fmt: skip
    kept = found(TWO_LAYERS + "net = Net()\nfor _ in range(20):\n    net(x)\n    nn.Linear(4, 4)\n")["Net"]
    assert (kept["calls"], kept["objects"]) == (20, 1)


def test_calls_with_many_shapes_are_grouped(found):
    models = found(
        TWO_LAYERS
        + """
net = Net().eval()
with torch.no_grad():
    for length in range(1, 21):
        net(torch.ones(1, length, 4))
        net(torch.ones(1, length, 4))
"""
    )
    assert [m["calls"] for m in models.models] == [2, 2, 2, 2]
    assert [m["other_shapes"] for m in models.models] == [16, 0, 0, 0]


def test_submodules_are_models_down_to_the_depth_asked_for(found):
    program = TWO_LAYERS + "class Outer(nn.Sequential): pass\nOuter(Net(), nn.ReLU(), nn.Linear(2, 2))(x)\n"
    assert found(program).classes == ["Outer"]
    models = found(program, max_depth=1)
    outer, net, last = models["Outer"], models["Net"], models["Linear"]
    assert models.classes == ["Outer", "Net", "Linear"]
    assert [(m["depth"], m["parent"], m["path"]) for m in (net, last)] == [
        (1, outer["identity"], "0"),
        (1, outer["identity"], "2"),
    ]
    assert [m["depth"] for m in found(program, max_depth=2).models] == [0, 1, 2, 2, 1]
    twice = found(TWO_LAYERS + "net = Net()\nnet(x)\nnet(torch.ones(5, 4))\n", max_depth=1)
    first, second = twice.all("Net")
    parents = [m["parent"] for m in twice.all("Linear")]
    assert parents == [first["identity"], first["identity"], second["identity"], second["identity"]]


def test_training_is_told_apart_from_inference(found):
    models = found(
        TWO_LAYERS
        + """
net, untrained = Net(), nn.Linear(4, 2)
loss_of = nn.MSELoss()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(6):
    untrained(x)
    loss = loss_of(net(x), torch.zeros(3, 2))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
net.eval()
with torch.no_grad():
    net(torch.ones(9, 4))
"""
    )
    trained, evaluated = models.all("Net")
    assert (trained["mode"], trained["calls"], trained["training_calls"]) == ("training", 6, 6)
    assert "6 training steps only (x 3×4 float32)" in trained["reason"]
    assert (evaluated["mode"], evaluated["calls"], evaluated["reason"]) == ("inference", 1, None)
    assert (models["Linear"]["mode"], models["Linear"]["training_calls"]) == ("inference", 0)
    assert "MSELoss" not in models.classes


def test_the_mode_of_a_model_is_told_with_the_layers_that_depend_on_it(found):
    models = found(
        """
        class Net(nn.Sequential): pass
        class Evaluated(nn.Sequential): pass
        Net(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.1), nn.Dropout(0.0))(x)
        Evaluated(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()(x)
        nn.Linear(4, 5)(x)
        partly = nn.LSTM(4, 2, 2, dropout=0.5)
        partly(x)
        """
    )
    told = {m["class"]: (m["in_training"], m["mode_dependent"]) for m in models.models}
    assert told == {
        "Net": (True, ["BatchNorm1d", "Dropout"]),
        "Evaluated": (False, []),
        "Linear": (True, []),
        "LSTM": (True, ["LSTM"]),
    }


def test_shapes_of_training_take_no_room_from_those_of_inference(found):
    models = found(
        TWO_LAYERS
        + """
net = Net()
for size in range(1, 20):
    net(torch.ones(size, 4)).sum().backward()
net.eval()
with torch.no_grad():
    net(torch.ones(50, 4)); net(torch.ones(3, 4))
"""
    )
    assert [m["inputs"][0]["shape"][0] for m in models.all("Net", mode="inference")] == [3, 50]
    assert len(models.all("Net", mode="training")) == 3


def test_models_that_are_never_called_are_listed_with_the_reason(found):
    models = found(
        TWO_LAYERS
        + """
def main():
    used, unused = Net(), nn.Conv2d(1, 2, 3)
    used(x)
main()
class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
holder = Holder()
holder.net(torch.ones(7, 4))
loss, other = nn.CrossEntropyLoss(weight=torch.ones(2)), nn.GRU(2, 2)
"""
    )
    conv, gru, whole = models["Conv2d"], models["GRU"], models["Holder"]
    assert {m["mode"] for m in (conv, gru, whole)} == {"never_called"}
    assert conv["made_at"]["line"] == 13
    assert "not called" in conv["reason"]
    assert "parts of it (net)" in whole["reason"]
    assert models.all("Net")[1]["path"] == "net"
    assert len(models.models) == 5


def test_modules_without_anything_learnt_count_only_if_there_is_nothing_else(found):
    plain = "class Add(nn.Module):\n    def forward(self, x): return x + 1\nAdd()(x); nn.L1Loss()(x, x)\n"
    assert found(plain).classes == ["Add"]
    assert found(plain + "nn.Linear(4, 4)(x)\n").classes == ["Linear"]


def test_wrapped_and_scripted_models_are_found_below_what_wraps_them(found):
    models = found(
        TWO_LAYERS
        + """
net = Net().eval()
net(x)
torch.nn.DataParallel(net)(x)
net.cpu()  # where there is a GPU, it went there
torch.compile(net, backend="eager")(x)
class Named(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 9)
    def forward(self, x): return self.layer(x)
compiled = torch.compile(Named(), backend="eager")
compiled(x); compiled(x)
net2 = nn.Linear(4, 11)
net2.compile(backend="eager")
net2(x)
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    source = nn.Sequential(nn.Linear(4, 12))
    scripted = torch.jit.trace(source, x)
scripted(x)
with torch.autocast("cpu", dtype=torch.bfloat16):
    nn.Linear(4, 13)(x)
""",
    )
    assert (models["Net"]["calls"], models["Net"]["wrappers"]) == (3, [])
    assert (models["Named"]["calls"], models["Named"]["wrappers"]) == (2, ["torch.compile"])
    assert models.all("Linear", parameters=55)[0]["wrappers"] == ["Module.compile"]
    assert models["Sequential"]["wrappers"] == ["torch.jit"]
    assert models["Sequential"]["calls"] == 1
    assert models.all("Linear", parameters=65)[0]["wrappers"] == ["autocast bfloat16"]
    assert len(models.models) == 5


def test_dynamo_skips_what_is_ours_only_as_long_as_the_hook_is_there(found, torch):
    import torch._dynamo.trace_rules as rules

    before, pattern = [*rules.SKIP_DIRS], rules.SKIP_DIRS_RE
    seen = found("import torch._dynamo.trace_rules as rules\nskipped = [*rules.SKIP_DIRS]\nnn.Linear(4, 4)(x)")
    added = [folder for folder in seen.names["skipped"] if folder not in before]
    assert [Path(folder).name for folder in added] == ["benchprobe", "benchmodels"]
    assert (before, pattern) == (rules.SKIP_DIRS, rules.SKIP_DIRS_RE)


def test_dynamo_compiles_the_same_graphs_as_without_the_hook(found, torch):
    program = """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 4)
            def forward(self, x): return self.layer(x)
        net, other = Net(), Net()
        net.layer.register_forward_hook(lambda module, inputs, output: output + 1)
        whole = torch.compile(net, backend="eager", fullgraph=True)
        function = torch.compile(lambda x: net(x) + other(x), backend="eager", fullgraph=True)
        for _ in range(3):
            whole(x), function(x)
        counted = {name: dict(values) for name, values in torch._dynamo.utils.counters.items()}
        """
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    models = found(program)
    with_hook = models.names["counted"]
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    names: dict[str, object] = {}
    exec("import torch\nfrom torch import nn\nx = torch.ones(3, 4)\n" + textwrap.dedent(program), names)
    assert with_hook == names["counted"]
    assert with_hook["stats"]["unique_graphs"] == 2
    assert [(m["calls"], m["wrappers"]) for m in models.all("Net", mode="inference")] == [(3, ["torch.compile"])]
    assert "compiled by torch.compile are not seen" in models.all("Net", mode="never_called")[0]["reason"]


def test_a_class_with_its_own_call_and_a_forward_called_directly_are_seen(found):
    models = found(
        TWO_LAYERS
        + """
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def __call__(self, text, times=2):
        return self.net(torch.ones(len(text), 4) * times)
Own()("abc")
class Mixin:
    def __call__(self, x): return self.layer(x) + 1
class Mixed(Mixin, nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 5)
Mixed()(x)
class Below(Own): pass
Below()("ab")
class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
stack = Stack()
stack.forward(x)
stack.forward(x)
class Changed(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)
    def forward(self, x):
        x = x.reshape(-1, 4)
        return self.layer(x)
changed = Changed()
changed.forward(x)
again = Changed()
again.forward(x.reshape(1, 3, 4))
"""
    )
    assert models.classes == ["Own", "Mixed", "Below", "Stack", "Changed", "Changed"]
    assert models["Own"]["inputs"] == [{"name": "text", "value": "'abc'"}]
    assert (models["Stack"]["calls"], models["Stack"]["wrappers"]) == (2, [".forward()"])
    seen, unseen = models.all("Changed")
    assert seen["inputs"][0]["shape"] == [1, 3, 4]
    assert "could not be seen" in unseen["reason"]


def test_lazy_checkpointed_and_traced_calls_are_no_trouble(found):
    models = found(
        """
        from torch.utils.checkpoint import checkpoint
        lazy = nn.Sequential(nn.LazyLinear(6), nn.ReLU())
        lazy(x)
        class Deep(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = nn.Linear(4, 4)
            def forward(self, x):
                return checkpoint(self.block, x, use_reentrant=False)
        deep = Deep()
        deep(x).sum().backward()
        exported = torch.export.export(nn.Sequential(nn.Linear(4, 5)), (x,))
        """
    )
    assert [(m["class"], m["mode"]) for m in models.models if m["mode"] != "never_called"] == [
        ("Sequential", "inference"), ("Deep", "training"),
    ]  # fmt: skip
    assert models.all("Sequential", mode="inference")[0]["parameters"] == 30


def test_nothing_is_kept_alive(found):
    models = found(
        """
        import weakref
        kept = []
        class Cache:
            def __init__(self): self.keys = torch.ones(2)
        class Net(nn.Linear):
            def forward(self, x, cache): return super().forward(x)
        def main():
            net, y, cache = Net(4, 2), torch.ones(2, 4), Cache()
            net(y, cache)
            kept.extend(weakref.ref(one) for one in (net, y, cache))
        main()
        """
    )
    gc.collect()
    assert [reference() for reference in models.names["kept"]] == [None, None, None]


def test_the_script_may_put_its_own_call_over_ours(found, torch):
    call, init = torch.nn.Module.__call__, torch.nn.Module.__init__
    models = found(
        """
        nn.Linear(4, 2)(x)
        before = nn.Module.__call__
        def mine(self, *args, **kwargs): return before(self, *args, **kwargs)
        nn.Module.__call__ = mine
        nn.Linear(4, 3)(x)
        """
    )
    try:
        assert models.lost
        assert len(models.models) == 2  # it still called the one below
    finally:
        torch.nn.Module.__call__ = models.names["before"]
    assert (torch.nn.Module.__call__, torch.nn.Module.__init__) == (call, init)


def test_torch_is_as_it_was_after_the_hook(found, torch):
    code = torch.nn.Module.__call__.__code__
    before = {name: vars(torch.nn.Module).get(name) for name in ("__call__", "__init__", "__init_subclass__")}
    backward = torch.autograd.backward
    assert not found("nn.Linear(4, 2)(x)").lost
    assert {name: vars(torch.nn.Module).get(name) for name in before} == before
    assert torch.nn.Module.__call__.__code__ is code
    assert torch.autograd.backward is backward
    assert not any(name.startswith("_benchprobe") for name in vars(torch.nn.modules.module))


def test_many_threads_at_once_lose_no_call(found):
    models = found(
        TWO_LAYERS
        + """
import threading
nets = [Net() for _ in range(4)]
def work(net):
    for _ in range(200): net(x)
threads = [threading.Thread(target=work, args=(net,)) for net in nets]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
    )
    assert (models["Net"]["calls"], models["Net"]["objects"]) == (800, 4)


def test_calls_that_fail_are_not_to_be_measured(found):
    models = found(
        """
        layer = nn.Linear(4, 2)
        for size in (4, 5):
            try:
                layer(torch.ones(2, size))
            except RuntimeError:
                pass
        """
    )
    works, fails = models.models
    assert works["reason"] is None
    assert "raised an exception: RuntimeError: mat1" in fails["reason"]


def test_of_objects_of_libraries_only_tensors_count(found):
    models = found(
        """
        import types
        class Net(nn.Linear):
            def forward(self, graph): return super().forward(graph._nodes)
        net = Net(4, 2)
        for version, size in ((1, 3), (2, 3), (2, 5)):
            net(types.SimpleNamespace(_nodes=torch.ones(size, 4), version=version, itself=[net]))
        """
    )
    assert [(m["calls"], m["inputs"][1:]) for m in models.models] == [
        (2, [{"name": "graph._nodes", "shape": [3, 4], "dtype": "float32"}]),
        (1, [{"name": "graph._nodes", "shape": [5, 4], "dtype": "float32"}]),
    ]


def test_inputs_are_looked_at_without_asking_them(found):
    models = found(
        """
        asked = []
        class Odd:
            @property
            def __dict__(self): asked.append("__dict__")
            @property
            def __class__(self): asked.append("__class__")
            def __getattr__(self, name): asked.append(name)
            def __repr__(self): asked.append("repr")
            def __eq__(self, other): asked.append("==")
            def __hash__(self): return 1
            def __iter__(self): asked.append("iter")
            def __len__(self): asked.append("len")
        class Loaded(dict):
            def __getitem__(self, key): asked.append(key)
            def __iter__(self): asked.append("iter")
            def keys(self): asked.append("keys")
        class Net(nn.Linear):
            def forward(self, x, *odd): return super().forward(x)
        Net(4, 2)(x, Odd(), Loaded(a=x), {Odd(): 1}, {Odd()}, iter([1]), (n for n in asked))
        """
    )
    assert models.names["asked"] == []
    assert {"name": "odd.1.a", "shape": [3, 4], "dtype": "float32"} in models["Net"]["inputs"]


@pytest.mark.xdist_group("transformers")
def test_a_generating_model_of_transformers_is_grouped(found_in, programs_folder):
    pytest.importorskip("transformers")
    models = found_in(programs_folder / "generates.py")
    gpt, bert = models.all("GPT2LMHeadModel"), models["BertModel"]
    assert [m["inputs"][0]["shape"] for m in gpt] == [[1, 5], [1, 1], [1, 1], [1, 1]]
    assert {"name": "past_key_values.layers.0.keys", "shape": [1, 2, 5, 16], "dtype": "float32"} in gpt[1]["inputs"]
    assert (gpt[0]["other_shapes"], bert["calls"], bert["items"]) == (8, 2, 2)


def test_parts_of_torchs_own_machinery_are_no_models(found):
    models = found(
        """
from torch.ao.quantization import FakeQuantize, MinMaxObserver
from torch.nn.utils import parametrizations, parametrize
class Symmetric(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
    def forward(self, x): return (x + x.T) * self.scale
normed = parametrizations.weight_norm(nn.Linear(4, 4))
normed.weight  # calls the parametrization from outside the model
own = nn.Linear(4, 4)
parametrize.register_parametrization(own, "weight", Symmetric())
own.weight
normed(torch.ones(2, 4))
MinMaxObserver()(torch.ones(3))
FakeQuantize()(torch.ones(3))
with torch.device("meta"):
    nn.Conv1d(1, 1, 1)(torch.ones(1, 1, 4))
""",
    )
    assert sorted({one["class"] for one in models.models}) == ["Conv1d", "ParametrizedLinear"]
    assert models["Conv1d"]["reason"].startswith("on the meta device")


def test_a_model_is_told_with_the_device_it_is_called_on(found):
    models = found(
        """
        tried = nn.Linear(4, 7, device="meta")
        tried(torch.ones(3, 4, device="meta"))
        tried.to_empty(device="cpu")(x)
        tried(x)
        kept = nn.Sequential(nn.Linear(4, 9), nn.Linear(9, 9, device="meta"))
        """
    )
    without, real = models.all("Linear")
    assert (without["device"], without["calls"], real["device"], real["calls"]) == ("meta", 1, "cpu", 2)
    assert real["reason"] is None
    assert [models["Sequential"][key] for key in ("device", "other_devices")] == ["cpu", ["meta"]]
    free = "class Free(nn.Module):\n    def forward(self, x):\n        return x * 2\nFree()(x)\n"
    assert found(free)["Free"]["device"] == "cpu"  # as its inputs say


def test_an_accelerator_counts_more_than_the_processor_it_was_tried_on():
    assert is_rather_on("cuda:0", "cpu")
    assert is_rather_on("xpu", None)
    assert not any(is_rather_on(*pair) for pair in [("cpu", "cuda:0"), ("cuda:1", "cuda:0"), ("meta", "cpu")])


def test_a_call_in_a_region_of_autocast_is_another_model(found):
    models = found(
        """
        net = nn.Linear(4, 3)
        for dtype in (None, torch.bfloat16, None, torch.float16, torch.bfloat16):
            with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
                net(x)
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", dtype=torch.bfloat16):
            for size in range(2, 9):
                net(torch.ones(size, 4))  # more shapes than get an entry
        net(torch.ones(9, 4))
        """
    )
    plain = models.all("Linear", wrappers=[])
    assert [(m["inputs"][0]["shape"], m["calls"]) for m in plain] == [([3, 4], 2), ([9, 4], 1)]
    cast = models.all("Linear", wrappers=["autocast bfloat16"])
    assert [m["calls"] for m in cast] == [3, 1, 1, 1]
    assert len(models.all("Linear", wrappers=["autocast float16"])) == 1
    assert len({m["identity"] for m in models.models}) == len(models.models)
    assert [m["other_shapes"] for m in (plain[0], cast[0])] == [0, 3]


def test_a_constructor_that_failed_built_no_model(found):
    models = found(
        """
        class Bad(nn.Module):
            def __init__(this, width):
                super().__init__()
                this.layer = nn.Linear(4, width)
                raise KeyError("default")
        class Good(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 5)
        try:
            Bad(7)
        except KeyError as error:
            kept = error
            nn.Linear(4, 6)(x)
        good = Good()
        """
    )
    assert sorted(models.classes) == ["Good", "Linear"]


def test_packed_parameters_of_torch_are_no_models():
    packed = pytest.importorskip("torch.ao.nn.quantized.modules.linear").LinearPackedParams
    assert is_internal(packed.__new__(packed))


class Lost(Exception):
    def __str__(self):
        raise AssertionError("the program's own code")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (KeyError("default"), "KeyError: 'default'"),
        (KeyError(0), "KeyError: 0"),
        (KeyError(("a", 1)), "KeyError"),
        (FileNotFoundError(2, "No such file or directory", "x.pt"), "[Errno 2] No such file or directory: 'x.pt'"),
        (ValueError("no", 2), "ValueError: ('no', 2)"),
        (AssertionError(), "AssertionError"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"), "'utf-8' codec can't decode byte 0xff in position 0"),
        (Lost("its text"), "Lost: its text"),
    ],
)
def test_a_reason_keeps_its_text_and_runs_none_of_the_programs_code(error, text):
    assert text in error_text(error)


def test_the_end_tells_other_frameworks_and_the_modules_of_the_user(under_discovery, tmp_path):
    (tmp_path / "parts.py").write_text("x = 1\n")
    (tmp_path / "sklearn.py").write_text("")
    (tmp_path / "odd.py").write_text("import parts, sklearn, json")
    end = under_discovery(tmp_path / "odd.py").one("discovery_end")
    assert end["frameworks"] == ["sklearn"]
    assert end["modules"] == [str(tmp_path / "parts.py"), str(tmp_path / "sklearn.py")]
