"""A script is run until it calls the model that is wanted; from there on it belongs to whoever wanted it."""

from __future__ import annotations

import textwrap

import pytest

CAPTURING = """
import sys, time
from benchmodels.discover.capture import run_until_call
from benchmodels.settings import read_settings
def then(captured):
    import torch
    taken = getattr(sys.modules["__main__"], "taken", None)
    if taken is not None:
        taken.set()
        time.sleep(0.5)  # meanwhile the script ends
    module = torch.nn.Module
    print("captured", type(captured.module).__name__, captured.names, [tuple(a.shape) for a in captured.args],
          {k: tuple(v.shape) for k, v in captured.kwargs.items()}, captured.identity, captured.weights is not None)
    print("modes", torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu"))
    print("plain", module.__call__.__code__.co_names, "__init_subclass__" in vars(module), module.__init__.__code__.co_filename.endswith("module.py"))
    print("autocast", captured.autocast and captured.autocast.dtype)
    print("requires", [a.requires_grad or a.is_inference() for a in captured.args])
    if "torch._dynamo" in sys.modules:
        from torch._dynamo import convert_frame, utils
        print("dynamo", utils.unpatched_nn_module_call is module.__call__, convert_frame._compile.__code__.co_filename[-16:])
    print("compiled", captured.module._compiled_call_impl is not None)
    captured.module(*captured.args, **captured.kwargs)
    if "raise" in sys.argv:
        raise ValueError("in the measurement")
    sys.stdout.flush()
sys.exit(run_until_call(read_settings(), sys.argv[1], sys.argv[2:], then))
"""

SCRIPT = """
    import atexit, sys
    import torch
    from torch import nn
    atexit.register(print, "the script ended by itself")
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 2)
        def __call__(self, x): return self.layer(x)
    model, other = nn.Linear(4, 2), nn.Linear(4, 3)
    x = torch.ones(3, 4, requires_grad=True) * 2
    other(x)
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        model.compile(backend="eager")
        torch.compile(model, backend="eager")(x)
    with torch.inference_mode():
        Own()(torch.ones(5, 4))
    print("not reached unless it is not called")
"""
# The same models, not compiled: the import of the compiler takes as long as that of torch.
UNCOMPILED = SCRIPT.replace('torch.compile(model, backend="eager")(x)', "model(x)").replace(
    'model.compile(backend="eager")', ""
)


@pytest.fixture
def capturing(under_discovery, tmp_path):
    """Runs SCRIPT until the model with that identity is called."""
    script = tmp_path / "script.py"
    driver = tmp_path / "driver.py"
    driver.write_text(CAPTURING)

    def run(identity: str, *args: str, program: str = SCRIPT):
        script.write_text(textwrap.dedent(program))
        return under_discovery(
            driver,
            str(script),
            *args,
            mode="measure",
            identity=identity,
            digest_weights=True,
            plainly=True,
            forked=True,
        )

    return run


def test_the_model_is_taken_with_its_inputs_and_torch_is_as_it_was(under_discovery, capturing):
    found = under_discovery(UNCOMPILED, forked=True)
    assert [m["class"] for m in found.models] == ["Linear", "Linear", "Own"]
    other, model, own = (m["identity"] for m in found.models)
    taken = capturing(model)
    assert taken.code == 0, taken.errors
    assert taken.output.splitlines() == [
        f"captured Linear ('input',) [(3, 4)] {{}} {model} True",
        "modes True False False",
        "plain ('_compiled_call_impl', '_call_impl') False True",
        "autocast bfloat16",
        "requires [False]",
        "dynamo True convert_frame.py",
        "compiled False",
    ]
    assert taken.all("failure") == []
    plain = capturing(own, program=UNCOMPILED)
    assert plain.output.startswith(f"captured Own ('x',) [(5, 4)] {{}} {own}")
    assert "dynamo" not in plain.output
    failing = capturing(other, "raise", program=UNCOMPILED)
    assert failing.code == 1
    assert "in the measurement" in failing.one("failure")["text"]
    assert "ended by itself" not in failing.output

    missed = capturing("0" * 16, program=UNCOMPILED)
    failure = missed.one("failure")
    assert (failure["stage"], failure["kind"], missed.code) == ("capture", "not_found", 0)
    assert f"it called Linear {other} (input 3×4 float32), Linear {model}" in failure["text"]
    assert missed.output.endswith("the script ended by itself\n")


@pytest.mark.parametrize(
    ("program", "words", "code"),
    [
        ("raise KeyError('early')", "KeyError: 'early'", 1),
        ("raise SystemExit(3)", "exited with 3", 0),
        ("import os; os._exit(3)", "it called no model", 3),
        ("print('no model')", "it called no model", 0),
    ],
)
def test_a_script_that_ends_before_is_a_failure(capturing, program, words, code):
    missed = capturing("0" * 16, program=program)
    assert (missed.code, len(missed.all("failure"))) == (code, 1)
    assert words in missed.one("failure")["text"]


IN_A_THREAD = """
    import threading, time
    import torch
    layer, x = torch.nn.Linear(4, 2), torch.ones(3, 4)
    taken = threading.Event()
    def call():
        layer(x)
        taken.set()
        time.sleep(1)
    threading.Thread(target=call, daemon=True).start()
    taken.wait(300)
    """


def test_a_model_that_a_thread_calls_is_kept_though_the_script_ends(under_discovery, capturing):
    (model,) = under_discovery(IN_A_THREAD, forked=True).models
    for ending in ("", "1 / 0", "import os; os._exit(3)", "raise SystemExit(2)"):
        taken = capturing(model["identity"], program=IN_A_THREAD + ending)
        assert (taken.code, taken.all("failure")) == (0, []), ending
        assert f"captured Linear ('input',) [(3, 4)] {{}} {model['identity']}" in taken.output
        assert "compiled False" in taken.output
        assert any("in a thread" in event["text"] for event in taken.all("message")), ending
