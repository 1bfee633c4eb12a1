"""ncnn cannot run the model of the contract, so it is held to the same with a network for images; and what is special to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmodels.runtimes.base import ArtifactFolder, Captured, CollectedSteps, RuntimeOptions, Session, Unsupported
from benchmodels.tensors import flatten_call, to_arrays
from benchwright_runtimes.ncnn import Ncnn, switch_off_rounding

ncnn: Any = pytest.importorskip("ncnn")
pytest.importorskip("pnnx")
torch = pytest.importorskip("torch")

# Tests share a process, and with it a build.
pytestmark = pytest.mark.xdist_group("ncnn")
TOLERANCE = 1e-6  # relative L2; float16 would miss it by far


class Images(torch.nn.Module):
    """Two inputs, one by keyword; dropout; outputs of four, three and two dimensions. Its first layer may write in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.second = torch.nn.Conv2d(8, 16, 3, stride=2)
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(16, 10)

    def forward(self, image: Any, *, scale: Any) -> Any:
        hidden = torch.relu(self.norm(self.first(torch.relu(image))))
        hidden = torch.nn.functional.gelu(self.second(hidden * scale))
        pooled = hidden.mean((2, 3))
        return {"hidden": hidden, "rows": hidden.amax(3), "scores": self.head(self.drop(pooled))}


class Loaded(NamedTuple):
    """The network in ncnn."""

    session: Session
    arrays: dict[str, Any]
    expected: dict[str, Any]
    steps: dict[str, float]


def built(folder: Any, module: Any, *args: Any, **kwargs: Any) -> Session:
    names = ("image",)
    Ncnn().build(Captured(module.eval(), args, kwargs, names), str(folder), RuntimeOptions(), CollectedSteps())
    return Ncnn().load(ArtifactFolder(str(folder)), RuntimeOptions())


@pytest.fixture(scope="module", params=[1, 3], ids=["one image", "three images"])
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    torch.manual_seed(0)
    module, folder, steps = Images().train(), tmp_path_factory.mktemp("ncnn"), CollectedSteps()
    args, kwargs = (torch.randn(request.param, 3, 17, 21),), {"scale": torch.rand(1, 8, 1, 1) + 0.5}
    Ncnn().build(Captured(module, args, kwargs, ("image",)), str(folder), RuntimeOptions(), steps)
    arrays = to_arrays(dict(flatten_call(args, kwargs, ("image",))))
    module.eval()
    with torch.no_grad():
        expected = to_arrays(module(*args, **kwargs))
    session = Ncnn().load(ArtifactFolder(str(folder)), RuntimeOptions())
    yield Loaded(session, arrays, expected, steps.seconds)
    session.close()


def relative_error(outputs: dict[str, Any], expected: dict[str, Any]) -> float:
    pairs = [(outputs[name].astype(np.float64), expected[name].astype(np.float64)) for name in expected]
    return max(float(np.linalg.norm(one - other) / np.linalg.norm(other)) for one, other in pairs)


def answered(session: Session, arrays: dict[str, Any]) -> dict[str, Any]:
    return session.outputs(session.run(session.prepare(arrays)))


def test_it_returns_what_eager_returns_unrounded_and_in_eval_mode(loaded):
    outputs = answered(loaded.session, loaded.arrays)
    assert list(outputs) == ["hidden", "rows", "scores"]
    for name, array in loaded.expected.items():
        assert (outputs[name].shape, outputs[name].dtype) == (array.shape, array.dtype), name
    assert relative_error(outputs, loaded.expected) < TOLERANCE


def test_outputs_are_kept_and_inputs_left_alone_when_it_is_called_again(loaded):
    session = loaded.session
    prepared = session.prepare(loaded.arrays)
    first = session.outputs(session.run(prepared))
    other = answered(session, {**loaded.arrays, "image": loaded.arrays["image"] * 2})
    assert relative_error(other, loaded.expected) > 0.01
    assert relative_error(first, loaded.expected) < TOLERANCE
    assert relative_error(session.outputs(session.run(prepared)), loaded.expected) < TOLERANCE
    assert not session.inputs_changed(prepared, loaded.arrays)


def test_it_tells_about_itself_and_its_build(loaded):
    session = loaded.session
    assert (session.details["threads"], session.precision, session.provider) == (1, "fp32", "CPU")
    assert session.details["wait_policy"]
    assert set(loaded.steps) == {"export", "convert"}
    assert Ncnn().version()[0].isdigit()
    [row] = session.profile(session.prepare(loaded.arrays), 3)
    assert row.op == "the runtime"
    assert 0 < row.seconds_per_call < 0.1


def test_another_stream_answers_the_same(loaded):
    stream = loaded.session.new_stream()
    assert relative_error(answered(stream, loaded.arrays), loaded.expected) < TOLERANCE
    stream.close()
    assert relative_error(answered(loaded.session, loaded.arrays), loaded.expected) < TOLERANCE


def test_everything_that_rounds_is_switched_off():
    net = ncnn.Net()
    assert net.opt.use_fp16_storage  # else this is not needed any more
    switch_off_rounding(net.opt)
    rounding = [name for name in dir(net.opt) if name.startswith(("use_fp16", "use_bf16", "use_int8"))]
    assert len(rounding) > 5
    assert not any(getattr(net.opt, name) for name in rounding)


class Best(torch.nn.Module):
    def forward(self, image: Any) -> Any:
        return image.argmax(1)


class Twice(torch.nn.Module):
    def forward(self, image: Any) -> Any:
        return image * 2


@pytest.mark.parametrize(
    ("module", "image", "stage", "operator", "text"),
    [
        (Best(), torch.randn(2, 3), "convert", "torch.argmax", "unsupported operator torch.argmax: ncnn has no layer"),
        (Twice(), torch.tensor([3]), "convert", None, "output output is int64"),
        (Twice(), torch.ones(3).half(), "export", None, "input image is float16"),
        (Twice(), torch.ones(()), "export", None, "has no dimensions"),
        (torch.nn.Linear(2, 2).bfloat16(), torch.ones(1, 2), "export", None, "the model is in bf16"),
    ],
    ids=["operator", "whole numbers", "type", "scalar", "precision"],
)
def test_what_it_has_not_is_told_by_name(tmp_path, module, image, stage, operator, text):
    with pytest.raises(Unsupported, match=text) as failure:
        built(tmp_path, module, image)
    assert (failure.value.stage, failure.value.kind, failure.value.operator) == (stage, "unsupported", operator)


def test_whole_numbers_are_looked_up_and_those_of_more_than_32_bits_refused(tmp_path):
    table, ids = torch.nn.Embedding(20, 4), torch.randint(0, 20, (2, 5))
    session = built(tmp_path, table, ids)
    found = answered(session, {"image": ids.numpy()})
    assert np.array_equal(found["output"], table(ids).detach().numpy())
    with pytest.raises(Unsupported, match="more than 32 bits"):
        session.prepare({"image": np.full((2, 5), 2**40)})
