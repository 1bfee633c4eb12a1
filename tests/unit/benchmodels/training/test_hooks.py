"""Steps that are reported several at once are recorded as if each had been reported by itself."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmodels.training import hooks as hooks_module
from benchmodels.training.hooks import TrainingHooks
from benchmodels.training.steps import TrainingSteps

MS = 1_000_000


class Recorded:
    """Writes down every step, whichever way it comes."""

    catching_up = False

    def __init__(self, at_once: int) -> None:
        self.steps_at_once = at_once
        self.written: list[tuple[Any, ...]] = []
        self.together = 0  # steps that came in `add`

    def begin(self, at_ns: int) -> None:
        self.written.append(("begin", at_ns))

    def step(self, waited_ns: int, items: int | None, loss: Any) -> None:
        self.written.append(("step", waited_ns, items))

    def add(self, ends_ns: Sequence[int], waits_ns: Sequence[int], items: Sequence[int | None], loss: Any) -> bool:
        assert len(ends_ns) == len(waits_ns) == len(items) <= self.steps_at_once
        for end_ns, wait_ns, size in zip(ends_ns, waits_ns, items, strict=True):
            self.step(wait_ns, size, None)
            self.end(end_ns)
        self.together += len(ends_ns)
        return True

    def end(self, at_ns: int) -> bool:
        self.written.append(("end", at_ns))
        return True

    def pause(self) -> bool:
        self.written.append(("pause",))
        return True

    def explain(self, text: str) -> None:
        self.written.append((text,))


class Torch:
    """As much of torch as is watched, on a clock that only moves when the program does something."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
        self.now = 0
        monkeypatch.setattr(hooks_module, "perf_counter_ns", lambda: self.now)
        torch = self

        class DataLoader:
            batch_size = None

            def __init__(self, sizes: list[int]) -> None:
                self.sizes = self.dataset = sizes

            def __iter__(self) -> Any:
                torch.now += MS // 10
                return Iterator(self)

        class Iterator:
            def __init__(self, loader: DataLoader) -> None:
                self._dataset, self._left = loader.dataset, list(loader.sizes)

            def __next__(self) -> Any:
                torch.now += MS // 5
                if not self._left:
                    raise StopIteration
                size = self._left.pop(0)
                return [SimpleNamespace(shape=(size, 3)), SimpleNamespace(shape=(size,))]

        self.DataLoader, self._BaseDataLoaderIter = DataLoader, Iterator
        self.autograd = SimpleNamespace(backward=lambda tensors: None)
        self.loop = Recorded(at_once)
        self.steps = TrainingSteps(self.loop)
        self.hooks = TrainingHooks(self.steps, lambda: None, pytest.fail)
        module: Any = self
        self.hooks._watch_loaders(module)
        self.hooks._watch_backward(module)
        self.hooks._watch_optimizers(module)

    def register_optimizer_step_post_hook(self, hook: Any) -> None:
        self.step = lambda optimizer: hook(optimizer, (), {})


def trained(epochs: list[list[str]], alike: int, at_once: int, with_loader: bool) -> Recorded:
    """What is recorded of a program that does, in each epoch, the things named."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(hooks_module, "STEPS_ALIKE", alike)
        torch = Torch(monkeypatch, at_once)
        first, second = (type("Optimizer", (), {})() for _ in range(2))
        evaluated = torch.DataLoader([5, 5])

        def turn(what: str) -> None:
            torch.now += {"slow": 30, "quick": 1}.get(what, 2) * MS
            if what == "evaluate":
                list(evaluated)
            elif what != "skip":
                for _ in range(2 if what == "accumulate" else 1):
                    torch.autograd.backward("a loss")
                if what != "accumulate":
                    torch.step(first)
                if what == "second":
                    torch.step(second)

        for epoch in epochs:
            if with_loader:
                for what, _ in zip(epoch, torch.DataLoader([8] * len(epoch)), strict=False):
                    turn(what)
            else:
                for what in epoch:
                    turn(what)
        torch.hooks.report()
        torch.steps.finish()
        return torch.loop


THINGS = st.one_of(
    st.lists(st.just("usual"), min_size=5, max_size=40),
    st.lists(st.sampled_from(["usual", "quick", "slow", "skip", "second", "evaluate"]), max_size=4),
    st.just(["accumulate", "usual"]),
)
EPOCHS = st.lists(st.lists(THINGS, max_size=5).map(lambda parts: [each for part in parts for each in part]), max_size=4)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(epochs=EPOCHS, at_once=st.integers(1, 40), with_loader=st.booleans())
def test_steps_reported_together_are_recorded_as_each_by_itself(epochs, at_once, with_loader):
    singly = trained(epochs, 10**9, at_once, with_loader)
    together = trained(epochs, 3, at_once, with_loader)
    assert together.written == singly.written


@pytest.mark.parametrize("with_loader", [True, False])
def test_most_steps_of_a_usual_training_are_reported_together(with_loader):
    loop = trained([["usual"] * 100] * 3, 3, 5, with_loader)
    assert loop.together > 200
    assert sum(what == "step" for what, *_ in loop.written) == 299  # the very first is not recorded
