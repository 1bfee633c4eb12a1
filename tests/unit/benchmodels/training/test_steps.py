"""Which stretches of a training program are its steps."""

from __future__ import annotations

from typing import Any

import pytest

from benchmodels.training.steps import TrainingSteps

TRAIN, OTHER = 1, 2


class Optimizer:
    pass


class Recorded:
    """Writes down what it is told; stops after `enough` steps."""

    def __init__(self, enough: int = 1000) -> None:
        self.begins: list[int] = []
        self.steps: list[tuple[int, int | None, Any]] = []  # waited, items, loss
        self.texts: list[str] = []
        self._enough = enough

    def begin(self) -> None:
        self.begins.append(len(self.steps))

    def step(self, waited_ns: int, ended_ns: int, items: int | None, loss: Any) -> bool:
        self.steps.append((waited_ns, items, loss))
        return len(self.steps) < self._enough

    def explain(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def loop() -> Recorded:
    return Recorded()


@pytest.fixture
def steps(loop: Recorded) -> TrainingSteps:
    return TrainingSteps(loop)


ADAM = Optimizer()


def batch(steps: TrainingSteps, loader: int = TRAIN, items: int | None = 8, waited_ns: int = 5) -> None:
    steps.fetch(loader)
    steps.fetched(loader, items, waited_ns)


def train(steps: TrainingSteps, count: int = 1, loss: float = 0.5, optimizer: Optimizer = ADAM) -> None:
    for _ in range(count):
        batch(steps)
        steps.backward(loss)
        steps.stepped(optimizer, 0)


def epoch(steps: TrainingSteps, loader: int, count: int, optimize: bool) -> None:
    steps.open(loader)
    steps.opened(loader, 0)
    for _ in range(count):
        batch(steps, loader)
        if optimize:
            steps.backward(0.5)
            steps.stepped(ADAM, 0)
    steps.exhausted(loader)


def test_every_step_but_the_first_is_recorded_with_its_items_waiting_and_loss(loop, steps):
    train(steps, 4, loss=0.25)
    assert loop.steps == [(5, 8, 0.25)] * 3
    assert loop.begins == [0]
    assert steps.steps == 4


def test_gradients_of_several_batches_are_one_step_with_all_their_items(loop, steps):
    for _ in range(3):
        for _ in range(4):
            batch(steps)
            steps.backward(0.1)
        steps.stepped(ADAM, 0)
    assert loop.steps == [(20, 32, 0.1)] * 2
    assert "4 backward passes each; 4 batches a step" in loop.texts[0]


def test_what_happens_between_epochs_belongs_to_no_step(loop, steps):
    for _ in range(2):
        epoch(steps, TRAIN, 3, optimize=True)
        epoch(steps, OTHER, 5, optimize=False)
    assert len(loop.steps) == 5  # all but the very first
    assert loop.begins == [0, 2]  # the second epoch begins anew
    assert {waited for waited, *_ in loop.steps} == {5}


def test_evaluation_in_the_middle_of_an_epoch_belongs_to_no_step(loop, steps):
    train(steps, 3)
    epoch(steps, OTHER, 5, optimize=False)
    train(steps, 2)
    assert len(loop.steps) == 4
    assert loop.begins == [0, 2]


def test_a_loader_made_anew_for_every_epoch_is_recognised_by_its_gradients(loop, steps):
    epoch(steps, 10, 4, optimize=True)
    epoch(steps, 11, 4, optimize=True)
    assert len(loop.steps) == 3 + 3  # the beginning of the first step on the new one was not seen


def test_two_loaders_that_feed_each_step_are_no_evaluation(loop, steps):
    for _ in range(4):
        batch(steps, TRAIN, items=8)
        batch(steps, OTHER, items=32)
        steps.backward(0.5)
        steps.stepped(ADAM, 0)
    assert loop.steps == [(10, 8, 0.5)] * 3
    assert "the first of 2, whose items are counted" in loop.texts[0]


def test_without_a_loader_items_are_unknown_and_evaluation_is_told_by_the_mode(loop, steps):
    def plain() -> None:
        steps.backward(0.5)
        steps.stepped(ADAM, 0)

    plain()
    plain()
    steps.mode(training=False)
    steps.mode(training=True)
    plain()
    assert loop.steps == [(0, None, 0.5)] * 2
    assert loop.begins == [0, 1]
    assert "the items of a step are unknown" in loop.texts[0]


def test_a_frozen_part_set_to_evaluation_in_every_step_does_not_stop_the_clock(loop, steps):
    for _ in range(3):
        steps.mode(training=False)
        steps.backward(0.5)
        steps.stepped(ADAM, 0)
    assert len(loop.steps) == 2
    assert loop.begins == [0]


def test_of_several_optimizers_the_first_counts(loop, steps):
    other = Optimizer()
    for _ in range(3):
        batch(steps)
        steps.backward(0.5)
        steps.stepped(ADAM, 0)
        steps.backward(0.7)
        steps.stepped(other, 0)
    assert len(loop.steps) == 2
    assert "other optimizers step too: Optimizer" in loop.texts[0]


def test_an_optimizer_that_takes_the_place_of_one_that_is_gone_counts(loop, steps):
    first = Optimizer()
    train(steps, 2, optimizer=first)
    del first
    train(steps, 2)
    assert steps.steps == 4


def test_a_batch_of_unknown_size_makes_the_items_of_its_step_unknown(loop, steps):
    train(steps)
    batch(steps, items=8)
    batch(steps, items=None)
    steps.backward(0.5)
    steps.stepped(ADAM, 0)
    assert loop.steps == [(10, None, 0.5)]


def test_it_stops_when_enough_is_measured():
    loop = Recorded(enough=2)
    steps = TrainingSteps(loop)
    train(steps, 10)
    assert steps.stopped
    assert len(loop.steps) == 2
