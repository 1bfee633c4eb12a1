"""What runtimes of torch do beyond their contract."""

from __future__ import annotations

import os
import textwrap

import pytest
from forked_python import SOURCES

from benchmodels.runtimes.base import Autocast, Captured, RuntimeOptions, Unsupported
from benchmodels.runtimes.parts.torch_modules import fitted
from benchmodels.runtimes.registry import runtime_named

torch = pytest.importorskip("torch")


def test_eager_does_not_import_the_compiler_and_nothing_is_compiled_later(forked_python, tmp_path):
    program = """
        import sys, torch
        from benchmodels.runtimes.base import Captured, RuntimeOptions
        from benchmodels.runtimes.registry import runtime_named

        compiled = []

        def backend(graph, inputs):
            compiled.append(graph)
            return graph.forward

        class Late(torch.nn.Module):
            def forward(self, x):
                if "torch._dynamo" in sys.modules:
                    return torch.compile(torch.sin, backend=backend)(x)
                return x.sin()

        captured = Captured(Late(), (torch.ones(3),), {}, ("x",))
        session = runtime_named("torch-eager").load(captured, RuntimeOptions("cpu", "fp32", 1))
        session.run(session.prepare(captured))
        assert "torch._dynamo" not in sys.modules, "seconds and memory that are not the model's"
        import torch._dynamo
        session.run(session.prepare(captured))
        assert not compiled
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    done = forked_python.run(str(path), env={**os.environ, "PYTHONPATH": str(SOURCES)}, cwd=tmp_path, plainly=True)
    assert done.returncode == 0, done.stderr


class Growing(torch.nn.Module):
    """Writes to a list that it is given, as caches of keys and values do."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: list[int] = []

    def forward(self, x, past):
        self.lengths.append(len(past))
        past.append(x)
        return torch.cat(past).sum()


class Adding(torch.nn.Module):
    def forward(self, x):
        self.seen = float(x.sum())
        return x.add_(1.0)


def test_a_profile_gives_each_call_inputs_of_its_own_where_a_call_uses_them_up():
    module, changing = Growing(), Adding()
    captured = Captured(module, (torch.ones(2), [torch.zeros(2)]), {}, ("x", "past"))
    session = runtime_named("torch-eager").load(captured, RuntimeOptions("cpu", "fp32", 1))
    found = session.profile(session.prepare(captured), 4)
    assert set(module.lengths) == {1}
    assert any(op.op == "aten::cat" for op in found)
    session.close()
    captured = Captured(changing, (torch.zeros(2),), {}, ("x",))
    session = runtime_named("torch-eager").load(captured, RuntimeOptions("cpu", "fp32", 1))
    assert session.profile(session.prepare(captured), 4)
    assert changing.seen == 0.0
    session.close()


def session_of(runtime: str, precision: str = "fp32", region: str | None = "bfloat16"):
    autocast = None if region is None else Autocast(region)
    captured = Captured(torch.nn.Linear(4, 4), (torch.ones(2, 4),), {}, autocast=autocast)
    session = runtime_named(runtime).load(captured, RuntimeOptions("cpu", precision, 1))
    return session, session.run(session.prepare(captured))


def test_a_call_under_autocast_is_measured_under_autocast():
    session, result = session_of("torch-eager")
    with_it = (result.dtype, session.precision, session.details["autocast"])
    session.close()
    assert with_it == (torch.bfloat16, "bf16", "bfloat16")
    assert not torch.is_autocast_enabled("cpu")  # a region for each call
    session, result = session_of("torch-eager", region=None)
    assert (result.dtype, session.precision) == (torch.float32, "fp32")
    session.close()


def test_a_precision_that_was_asked_for_replaces_autocast():
    session, result = session_of("torch-eager", "fp16")
    assert (result.dtype, session.precision) == (torch.float16, "fp16")
    assert "autocast" not in session.details
    session.close()


def test_a_model_that_is_quantised_for_the_cpu_is_not_moved_to_a_gpu():
    # Not torch's own, which some processors cannot make.
    quantised = type("Linear", (torch.nn.Linear,), {"__module__": "torch.ao.nn.quantized.dynamic.modules.linear"})
    whole = torch.nn.Sequential(torch.nn.ReLU(), quantised(4, 2)).eval()
    with pytest.raises(Unsupported, match="its Linear is quantised for the CPU") as caught:
        fitted(whole, RuntimeOptions(device="cuda"))
    assert caught.value.kind == "unavailable"
    assert fitted(whole, RuntimeOptions()).module is whole
