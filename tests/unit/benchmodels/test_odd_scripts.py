"""Scripts that would notice us: under discovery they print, warn, fail and end exactly as under plain Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Lines with a time or an address differ from run to run, whoever runs it.
CHANGING = re.compile(r"^USDT:.*\n|0x[0-9a-f]{6,}", re.MULTILINE)


def plainly(script: Path) -> tuple[int, str, str]:
    """What a script does without us."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("COV")}
    command = [sys.executable, str(script), "--flag"]
    ended = subprocess.run(command, env=env, input="given", capture_output=True, text=True, timeout=600)
    return ended.returncode, ended.stdout, CHANGING.sub("", ended.stderr)


@pytest.mark.parametrize(
    ("name", "depths"),
    [
        pytest.param("inputs", (0, 1), marks=pytest.mark.long),
        ("stack", (0, 1)),
        pytest.param("modules", (0, 1), marks=pytest.mark.long),
        pytest.param("processes", (0,), marks=pytest.mark.long),
        pytest.param("tracer", (0,), marks=pytest.mark.long),
    ],
)
def test_an_odd_script_does_under_discovery_what_it_does_plainly(
    under_discovery, programs_folder, torch, monkeypatch, name, depths
):
    for variable in [each for each in os.environ if each.startswith("COV")]:  # a tracer of our own
        monkeypatch.delenv(variable)
    script = programs_folder / "odd" / f"{name}.py"
    expected = plainly(script)
    forked = name != "processes"  # one of those it starts writes after its end
    for depth in depths:
        found = under_discovery(
            script, "--flag", stdin="given", max_depth=depth, digest_weights=True, seed=None, forked=forked
        )
        assert (found.code, found.output, CHANGING.sub("", found.errors)) == expected, f"at depth {depth}"
        assert found.models


def test_a_call_that_cannot_be_described_is_left_alone_and_told(found):
    models = found(
        """
        import warnings
        warnings.simplefilter("ignore")
        parts = [torch.ones(2, 4), torch.ones(3, 4)]
        net, other = nn.Sequential(nn.Linear(4, 2)), nn.Linear(4, 3)
        shapes = [net(torch.nested.nested_tensor(parts)).size(0)]
        shapes += [other(torch.nested.nested_tensor(parts, layout=torch.jagged)).size(0), tuple(other(x).shape)]
        """,
        complain=True,
    )
    assert models.names["shapes"] == [2, 2, (3, 3)]
    told = {m["class"]: (m["mode"], m["reason"]) for m in models.models}
    assert told["Sequential"] == ("inference", "its calls were skipped: its input 'input' is a nested tensor")
    assert told["Linear"] == ("inference", None), "the other call of it can be measured"
    assert "skipped a call of Linear: its input 'input' is a nested tensor" in models.complaints


def test_our_frames_are_on_no_stack_while_a_model_runs(found):
    models = found(
        """
        import sys
        def frames():
            frame, seen = sys._getframe(1), []
            while frame is not None and frame.f_globals is not globals() or frame.f_code.co_name != "<module>":
                seen.append(frame.f_code.co_filename)
                frame = frame.f_back
            return seen
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 2)
            def forward(self, x):
                seen.extend(frames())
                return self.layer(x)
        class Own(Net):
            def __call__(self, x): return self.forward(x)
        seen = []
        for net in (Net(), Own()):
            net(x)
            net.forward(x)
        """
    )
    assert models.names["seen"]
    assert not [file for file in models.names["seen"] if "benchprobe" in file or "benchmodels" in file]


def test_looking_at_a_model_does_not_call_it(under_discovery):
    found = under_discovery(
        """
        import torch
        from torch import nn
        net, features = nn.Linear(4, 2), []
        net.register_forward_hook(lambda module, inputs, output: features.append(output))
        net(torch.ones(3, 4))
        print(len(features), features[0].device)
        """,
        digest_weights=True,
        forked=True,
    )
    assert (found.code, found.output) == (0, "1 cpu\n")
