"""An identity is the same wherever the same model is, and another one for anything that would change what is measured."""

from __future__ import annotations

import sys
import textwrap

import pytest

from benchmodels.build import build_key as content
from benchmodels.build.build_key import content_digest
from benchmodels.discover.callers import is_library
from benchmodels.identity.identity import structure_of
from benchmodels.identity.source_text import normalised
from benchmodels.identity.weights import weights_digest

ELSEWHERE = [
    ("Block", "4f0f28148a134427"),
    ("Block", "54db00a999af4105"),
    ("Convolutions", "36f3921656540db4"),
    ("LSTM", "45a1801676e79e57"),
    ("TransformerEncoder", "95fe6b8d76976a24"),
    ("TransformerEncoderLayer", "cba23d55b353a196"),
]

NET = """
HIDDEN = 8
def activation(x):
    return torch.relu(x)
class Net(nn.Module):
    def __init__(self, heads=2, width=8):
        super().__init__()
        self.start = nn.Linear(4, width)
        self.attention = nn.MultiheadAttention(width, heads)
        self._steps = 3
    def helper(self, x):
        return activation(x) * HIDDEN
    def forward(self, x):
        y = self.helper(self.start(x))
        return self.attention(y, y, y)[0]
"""


@pytest.fixture
def identity(found):
    def of(program: str) -> str:
        (model,) = found(program, max_depth=0).models
        return model["identity"]

    return of


def test_it_does_not_depend_on_how_the_model_is_used(identity):
    plain = identity(NET + "Net()(x)")
    assert identity(NET + "Net().eval()(x)") == plain
    assert identity(NET + "with torch.no_grad(): Net()(x=x)") == plain
    assert identity(NET + "with torch.inference_mode(): Net().requires_grad_(False)(x.clone())") == plain
    assert identity(NET + "torch.compile(Net(), backend='eager')(x)") == plain
    assert identity("y = x\n" + NET.replace("class Net", "# a comment\n\nclass Net") + "Net()(y)") == plain
    assert identity(NET.replace("activation(x) * HIDDEN", "activation( x )  *  HIDDEN # same") + "Net()(x)") == plain
    parts = "net = Net()\nnet.start = torch.compile(net.start, backend='eager')\nnet(x)"
    assert identity(NET + parts) == plain
    trained = NET + "net = Net()\nnet(x).sum().backward()\ntorch.optim.SGD(net.parameters(), 1.).step()\n"
    assert identity(trained) == plain


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("heads=2", "heads=4"),
        ("width=8", "width=16"),
        ("torch.relu", "torch.tanh"),
        ("HIDDEN = 8", "HIDDEN = 9"),
        ("self._steps = 3", "self._steps = 4"),
        ("self.start = nn.Linear(4, width)", "self.start = nn.Linear(4, width, bias=False)"),
        ("self.start = nn.Linear(4, width)", "self.start = nn.Linear(4, width); self.register_buffer('b', x)"),
        ("y = self.helper(self.start(x))", "y = self.helper(self.start(x))\n        y = y + 1"),
        ("Net()(x)", "Net()(x.repeat(2, 1))"),
        ("Net()(x)", "Net().double()(x.double())"),
    ],
)
def test_it_changes_with_what_matters(identity, before, after):
    program = NET + "Net()(x)"
    assert identity(program) != identity(program.replace(before, after))


OUTSIDE = """
import argparse, functools
import torch.nn.functional as F
SETTINGS, FACTORS = {"act": "relu"}, [1, 2]
class Config:
    dim = 4
    def __init__(self): self.power, self.made = 1, object()
config = Config()
class Helper:
    def run(self, x): return x + 5
class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 10
def outer(function):
    @functools.wraps(function)
    def around(*args): return function(*args) - 20
    return around
def scaled(by):
    def scale(x): return x * by
    return scale
class Net(nn.Module):
    bias = 3
    def __init__(self, args=argparse.Namespace(depth=6)):
        super().__init__()
        self.layer, self.scale, self.args = nn.Linear(4, 4), scaled(30), args
        self.act = functools.partial(F.gelu, approximate="tanh")
        self.either = (lambda x: x + 40) if True else (lambda x: x + 50)
        self.table = torch.ones(7)
    @outer
    def forward(self, x):
        y = Double.apply(Helper().run(self.layer(x))) + self.bias + FACTORS[0] + Config.dim + config.power
        return self.either(self.scale(self.act(y))) * self.args.depth if SETTINGS["act"] else y
net = Net()
net.layer.register_forward_hook(lambda module, inputs, output: output + 60)
net(x)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"act": "relu"', '"act": "gelu"'),
        ("[1, 2]", "[3, 2]"),
        ("dim = 4", "dim = 5"),
        ("self.power, self.made = 1", "self.power, self.made = 2"),
        ("x + 5", "x + 6"),
        ("x * 10", "x * 11"),
        ("- 20", "- 21"),
        ("bias = 3", "bias = 4"),
        ("depth=6", "depth=7"),
        ("scaled(30)", "scaled(31)"),
        ("tanh", "none"),
        ("if True else", "if False else"),
        ("torch.ones(7)", "torch.ones(8)"),
        ("output + 60", "output + 61"),
        ("net(x)", "net.layer.forward = lambda x: x\nnet(x)"),
        ("net(x)", "net(x.to_sparse())"),
    ],
)
def test_it_changes_with_what_its_code_uses_from_outside(found, before, after):
    (model,) = found(OUTSIDE, complain=True).models
    (other,) = [m for m in found(OUTSIDE.replace(before, after), complain=True).models if m["class"] == "Net"]
    assert before in OUTSIDE
    assert model["identity"] != other["identity"]


def test_it_does_not_change_with_what_its_code_does_not_use(identity):
    """Among them a variable that is called as an attribute is, and differs in every run."""
    program = NET.replace("HIDDEN\n", "HIDDEN * x.t().shape[1]\n") + "import time\nt = time.time()\nNet()(x)"
    assert identity(program) == identity(program)
    compiled = "net = Net()\nnet.forward = torch.compile(net.forward, backend='eager')\nnet(x)"
    assert identity(NET + compiled) == identity(NET + "Net()(x)")


def test_code_is_no_part_of_it_where_that_is_switched_off(identity, monkeypatch):
    other = NET.replace("torch.relu(x)", "torch.tanh(x)") + "Net()(x)"
    assert identity(NET + "Net()(x)") != identity(other)
    monkeypatch.setenv("BENCHMODELS_HASH_CODE", "0")
    assert identity(NET + "Net()(x)") == identity(other)
    assert identity(NET + "Net()(x)") != identity(NET + "Net(width=16)(x)")


def test_helpers_in_other_files_of_the_user_count(under_discovery, tmp_path):
    program = """
        import sys
        import torch
        sys.dont_write_bytecode = True
        import package.helpers
        class Net(torch.nn.Linear):
            def forward(self, x): return package.helpers.act(super().forward(x))
        Net(4, 2)(torch.ones(3, 4))
        """
    (tmp_path / "package").mkdir()
    found = set()
    for result in ("x", "x + 1"):
        (tmp_path / "package" / "helpers.py").write_text(f"def act(x):\n    return {result}\n")
        (model,) = under_discovery(program, forked=True).models
        found.add(model["identity"])
    assert len(found) == 2


def test_what_the_script_puts_into_libraries_counts(found, torch):
    plain = "nn.Sequential(nn.Linear(4, 4), nn.GELU())(x)\n"
    linear, gelu = torch.nn.Linear.forward, torch.nn.functional.gelu
    programs = [
        plain,
        "nn.Linear.forward = lambda self, input: input @ self.weight\n" + plain,
        "import torch.nn.functional as F\ndef gelu(x, approximate='none'): return x\nF.gelu = gelu\n" + plain,
        "from torch.fx import symbolic_trace\nsymbolic_trace(nn.Sequential(nn.Linear(4, 4), nn.GELU()))(x)",
    ]
    identities = set()
    for program in programs:
        try:
            identities.add(found(program).models[0]["identity"])
        finally:
            torch.nn.Linear.forward, torch.nn.functional.gelu = linear, gelu
    assert len(identities) == 4


@pytest.mark.xdist_group("transformers")
def test_what_a_library_takes_from_a_configuration_as_it_runs_counts(torch):
    transformers = pytest.importorskip("transformers")
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 8,
        "vocab_size": 9,
    }

    def structure(**more):
        return structure_of(transformers.BertModel(transformers.BertConfig(**sizes, **more)))

    assert structure() == structure(attn_implementation="sdpa", bos_token_id=3)
    assert len({structure(), structure(attn_implementation="eager"), structure(output_hidden_states=True)}) == 3


def test_how_weights_lie_in_memory_counts(torch):
    plain, other = torch.nn.Conv2d(3, 4, 3), torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    assert structure_of(plain) != structure_of(other)


def test_tied_parameters_are_not_the_same_as_two(torch):
    nn = torch.nn
    two = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    tied = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    tied[1].weight = tied[0].weight
    shared = nn.Sequential(two[0], two[0])
    assert len({structure_of(two), structure_of(tied), structure_of(shared)}) == 3


def test_settings_of_torchs_own_classes_count(torch):
    nn = torch.nn
    pairs = [
        (nn.Conv2d(3, 8, 3), nn.Conv2d(3, 8, 3, stride=2)), (nn.Dropout(0.1), nn.Dropout(0.2)),
        (nn.LSTM(4, 4), nn.LSTM(4, 4, batch_first=True)), (nn.LayerNorm(4), nn.LayerNorm(4, eps=1e-3)),
        (nn.TransformerEncoderLayer(4, 2), nn.TransformerEncoderLayer(4, 2, activation="gelu")),
        (nn.Upsample(scale_factor=2), nn.Upsample(scale_factor=2, mode="bilinear")),
    ]  # fmt: skip
    for one, other in pairs:
        assert structure_of(one) != structure_of(other), one
        assert structure_of(one) == structure_of(type(one).__call__ and one.eval())


def test_the_same_script_gives_the_same_identities_in_two_processes(under_discovery, programs_folder):
    """On the machine with a GPU, too: these are what Python 3.12 with torch 2.11 found there."""
    first = under_discovery(programs_folder / "two_models.py", digest_weights=True, forked=True)
    second = under_discovery(programs_folder / "two_models.py", digest_weights=True, python=(sys.executable, "-R"))
    assert first.code == 0, first.errors
    told = [(m["class"], m["identity"]) for m in first.models]
    assert told == [(m["class"], m["identity"]) for m in second.models]
    assert [m["weights"] for m in first.models] == [m["weights"] for m in second.models]
    assert told == ELSEWHERE


def test_source_is_compared_without_comments_and_blanks_but_with_its_blocks():
    def text(source: str) -> str:
        return normalised(textwrap.dedent(source))

    assert text("if a:\n    b( 1 )  # c\n\nd\n") == text("if a:\n  b(1)\nd\n")
    assert text("if a:\n    b\nd\n") != text("if a:\n    b\n    d\n")
    assert text("f'{x} {{y}}'\n") != text("f'{x} {{ y}}'\n")
    assert text("a\n\x0c\nb = 1\n") != text("a\n\x0c\nb = 2\n"), "a form feed ends no line"


def test_weights_are_told_apart(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(33, 17), nn.BatchNorm1d(17), nn.Conv1d(3, 5, 7))
    model.register_buffer("scalar", torch.tensor(1.5))
    model.register_buffer("strided", torch.arange(12.0).reshape(3, 4).t())
    model.register_buffer("flags", torch.tensor([True, False, True]))
    model.register_buffer("halves", torch.arange(7).to(torch.bfloat16))
    model.register_buffer("waves", torch.ones(3, dtype=torch.complex64).conj())
    before = weights_digest(model)
    assert before == weights_digest(model.eval().requires_grad_(False))
    assert before is not None
    seen = {before}
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            last = tuple(size - 1 for size in tensor.shape)
            tensor[last] = ~tensor[last] if tensor.dtype == torch.bool else tensor[last] + 1
            seen.add(weights_digest(model))
        first, *_ = model.parameters()
        first[0, 0], first[5, 6] = first[5, 6].clone(), first[0, 0].clone()
        seen.add(weights_digest(model))
    assert len(seen) == 2 + len([*model.parameters(), *model.buffers()])
    assert weights_digest(nn.Linear(2, 2, device="meta")) is None


def test_tensors_that_are_mere_attributes_are_among_the_weights(torch):
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    model[0].table, model[0].scales = {"a": torch.ones(3)}, torch.ones(2).numpy()
    seen = {weights_digest(model)}
    model[0].table["a"][1] = 2
    seen.add(weights_digest(model))
    model[0].scales[1] = 2
    seen.add(weights_digest(model))
    assert len(seen) == 3


def test_weights_make_another_model_only_if_asked(found):
    program = "torch.manual_seed(0)\none, other = nn.Linear(4, 4), nn.Linear(4, 4)\none(x)\nother(x)\n"
    assert len(found(program).models) == 1
    first, second = (found(program, weights_in_identity=True).models for _ in range(2))
    assert len(first) == 2
    assert [m["identity"] for m in first] == [m["identity"] for m in second]


def test_what_else_a_build_depends_on(torch, monkeypatch):
    class Config:
        def __init__(self, **values):
            self.values = values

        def to_dict(self):
            return self.values

    model, ones = torch.nn.Linear(2, 2), torch.ones(3, 2)
    seen = {content_digest(model, (ones,), {})}
    assert {content_digest(model, (torch.ones(3, 2),), {})} == seen, "the same values"
    seen.add(content_digest(model, (ones * 2,), {}))
    seen.add(content_digest(model, (), {"input": {"nested": [ones]}}))
    model.config = Config(window=3, name_or_path="/home/somebody/model")
    seen.add(content_digest(model, (ones,), {}))
    model.config = Config(window=3, name_or_path="/srv/model")
    assert content_digest(model, (ones,), {}) in seen
    model.config = Config(window=4)
    seen.add(content_digest(model, (ones,), {}))
    monkeypatch.setattr(torch, "__version__", "2.99")
    seen.add(content_digest(model, (ones,), {}))
    assert None not in seen
    assert len(seen) == 6
    assert content_digest(model, (torch.ones(3, 2, device="meta"),), {}) is None


def test_packages_in_any_folder_of_an_installer_are_not_the_users_own(tmp_path, monkeypatch):
    bare, target = tmp_path / "bare", tmp_path / "target"
    for folder in (bare, target):
        folder.mkdir()
        monkeypatch.syspath_prepend(str(folder))
    (target / "thing-1.0.dist-info").mkdir()
    (bare / "thing.egg-info").mkdir()  # of a project that is developed there
    assert is_library(str(target / "thing" / "layers.py"))
    assert not is_library(str(bare / "thing" / "layers.py"))
    assert not is_library(str(tmp_path / "script.py"))


def test_comments_in_the_users_own_code_make_no_other_build_unless_there_is_much_of_it(torch, tmp_path, monkeypatch):
    model, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    monkeypatch.setattr(content, "_own_files", lambda: [str(path) for path in tmp_path.glob("*.py")])

    def digest(text):
        content._source_digest.cache_clear()
        (tmp_path / "own.py").write_text(text)
        return content_digest(model, (x,), {})

    assert digest("SCALE = 2\n") == digest("# twice\nSCALE = 2\n")
    assert digest("SCALE = 2\n") != digest("SCALE = 3\n")
    monkeypatch.setattr(content, "MOST_PARSED_BYTES", 1)
    assert digest("SCALE = 2\n") != digest("# twice\nSCALE = 2\n")
