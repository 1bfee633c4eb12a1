"""Which stretches of a training program are its steps."""

from __future__ import annotations

from typing import Any

import pytest

from benchmodels.training.steps import Pass, TrainingSteps

TRAIN, OTHER = 1, 2


class Optimizer:
    pass


class Recorded:
    """Writes down what it is told; stops after `enough` steps."""

    def __init__(self, enough: int = 1000) -> None:
        self.begins: list[int] = []  # each by the number of steps before it
        self.steps: list[tuple[int, int | None, Any]] = []  # waited, items, loss
        self.times: list[tuple[int, int]] = []  # of each step: from, to
        self.texts: list[str] = []
        self._enough = enough
        self._began = 0

    def begin(self, at_ns: int) -> None:
        self.begins.append(len(self.steps))
        self._began = at_ns

    def step(self, waited_ns: int, items: int | None, loss: Any) -> None:
        self.steps.append((waited_ns, items, loss))

    def end(self, at_ns: int) -> bool:
        self.times.append((self._began, at_ns))
        self._began = at_ns
        return len(self.times) < self._enough

    catching_up = False
    steps_at_once = 1

    def pause(self) -> bool:
        return True

    def explain(self, text: str) -> None:
        self.texts.append(text)

    @property
    def total(self) -> int:
        return sum(end - begin for begin, end in self.times)


class Program:
    """A training program on a clock of its own. Each call takes the time given with it."""

    def __init__(self, loop: Recorded) -> None:
        self.steps = TrainingSteps(loop)
        self.now = 1000
        self.passes: dict[int, Pass] = {}

    def works(self, duration: int) -> None:
        self.now += duration

    def open(self, loader: int = TRAIN, duration: int = 0) -> None:
        asked, self.now = self.now, self.now + duration
        self.passes[loader] = self.steps.opened(loader, asked, self.now)

    def fetch(self, loader: int = TRAIN, items: int | None = 8, duration: int = 5) -> None:
        asked, self.now = self.now, self.now + duration
        self.steps.fetched(loader, items, asked, self.now)

    def exhaust(self, loader: int = TRAIN, duration: int = 0) -> None:
        self.now += duration
        self.steps.exhausted(loader, self.now)

    def leave(self, loader: int = TRAIN, duration: int = 0) -> None:
        self.now += duration
        self.steps.left(loader, self.passes[loader], self.now)

    def compute(self, duration: int = 10, loss: float = 0.5) -> None:
        self.now += duration
        self.steps.backward(loss)

    def optimize(self, optimizer: Optimizer | None = None, duration: int = 1) -> None:
        self.now += duration
        self.steps.stepped(optimizer or ADAM, self.now)

    def train(self, count: int = 1, loader: int = TRAIN, optimizer: Optimizer | None = None) -> None:
        for _ in range(count):
            self.fetch(loader)
            self.compute()
            self.optimize(optimizer)

    def epoch(self, count: int, loader: int = TRAIN, start: int = 0, end: int = 0) -> int:
        """Returns the time of its loop."""
        began = self.now
        self.open(loader, start)
        self.train(count, loader)
        self.exhaust(loader, end)
        return self.now - began

    def evaluate(self, count: int, loader: int = OTHER) -> None:
        self.open(loader)
        for _ in range(count):
            self.fetch(loader)
            self.works(50)
        self.exhaust(loader)


ADAM = Optimizer()


@pytest.fixture
def loop() -> Recorded:
    return Recorded()


@pytest.fixture
def program(loop: Recorded) -> Program:
    return Program(loop)


def test_every_step_but_the_first_is_recorded_with_its_items_waiting_and_loss(loop, program):
    program.train(4)
    program.steps.finish()
    assert loop.steps == [(5, 8, 0.5)] * 3
    assert [end - begin for begin, end in loop.times] == [16] * 3
    assert loop.begins == [0]
    assert program.steps.steps == 4


def test_gradients_of_several_batches_are_one_step_with_all_their_items(loop, program):
    for _ in range(3):
        for _ in range(4):
            program.fetch()
            program.compute()
        program.optimize()
    assert loop.steps == [(20, 32, 0.5)] * 2
    assert "4 backward passes each; 4 batches a step" in loop.texts[0]


def test_the_steps_of_an_epoch_take_the_time_of_its_loop_workers_included(loop, program):
    program.epoch(3)
    before = loop.total
    spent = program.epoch(4, start=300, end=200)
    program.works(70)  # a checkpoint
    spent += program.epoch(4, start=300, end=200)
    assert loop.total - before == spent
    assert program.steps.left_out_ns == [0, 70]


def test_what_happens_between_epochs_belongs_to_no_step(loop, program):
    for _ in range(2):
        program.epoch(3)
        program.evaluate(5)
    assert len(loop.steps) == 5  # all but the very first
    assert loop.begins == [0, 2]  # the second epoch begins anew
    assert {waited for waited, *_ in loop.steps} == {5}
    assert program.steps.left_out_ns == [5 * 55]


def test_evaluation_in_the_middle_of_an_epoch_belongs_to_no_step(loop, program):
    program.train(3)
    program.works(7)  # belongs to the step: the program has not asked for anything else yet
    program.evaluate(5)
    program.train(2)
    program.steps.finish()
    assert [end - begin for begin, end in loop.times] == [16, 23, 16, 16]
    assert loop.begins == [0, 2]
    assert program.steps.left_out_ns == [5 * 55]


def test_a_loader_made_anew_for_every_epoch_is_recognised_by_its_gradients_and_counts_from_its_start(loop, program):
    program.epoch(4, 10)
    before, spent = loop.total, 0
    for loader in (11, 12):
        program.evaluate(3, loader + 10)
        spent += program.epoch(4, loader, start=300, end=100)
    assert len(loop.steps) == 3 + 4 + 4
    assert loop.total - before == spent
    assert loop.steps[3] == (305, 8, 0.5)
    assert not program.steps.is_fed_by(21)
    assert program.steps.is_fed_by(12)


@pytest.mark.parametrize("late", [False, True])
def test_a_loop_left_by_break_ends_there(loop, program, late):
    """`late`: after the next batch was fetched, which is not trained on."""
    program.epoch(3)
    before, spent = loop.total, 0
    for _ in range(2):
        program.works(1000)
        began = program.now
        program.open(duration=40)
        program.train(4)
        if late:
            program.fetch()
        program.leave(duration=60)
        spent += program.now - began
    program.epoch(1)  # with it, what followed the last step of a loop is counted
    assert loop.total - before == spent + 16


def test_a_loop_left_unseen_ends_with_its_last_step(loop, program):
    program.epoch(3)
    program.open()
    program.train(3)
    program.works(1000)  # the iterator lives on, as that of persistent workers does
    program.epoch(3)
    assert max(end - begin for begin, end in loop.times) == 16


def test_one_iterator_for_every_batch_loses_no_time(loop, program):
    for _ in range(5):
        program.open(duration=3)
        program.fetch()
        program.leave()
        program.compute()
        program.optimize()
        program.works(2)
    assert [end - begin for begin, end in loop.times] == [23, 21, 21]  # the first began with the optimizer
    assert len(loop.begins) == 1


def test_a_loader_that_fetches_ahead_is_exhausted_before_its_last_step(loop, program):
    program.epoch(3)
    before, spent = loop.total, 0
    for _ in range(2):
        began = program.now
        program.open()
        program.fetch()
        for last in (False, False, False, True):
            if last:
                program.exhaust()
            else:
                program.fetch()
            program.compute()
            program.optimize()
        spent += program.now - began
        program.works(500)
    assert loop.total - before == spent
    assert sum(items for _, items, _ in loop.steps) == 2 * 8 + 2 * 4 * 8


def test_two_loaders_that_feed_each_step_are_no_evaluation(loop, program):
    for _ in range(4):
        program.fetch(TRAIN, items=8)
        program.fetch(OTHER, items=32)
        program.compute()
        program.optimize()
    assert loop.steps == [(10, 8, 0.5)] * 3
    assert "the first of 2, whose items are counted" in loop.texts[0]


def test_several_steps_for_one_batch_are_steps_of_their_own(loop, program):
    for _ in range(3):
        program.fetch()
        for _ in range(2):
            program.compute()
            program.optimize()
    program.steps.finish()
    assert [items for _, items, _ in loop.steps] == [None, 8, 0, 8, 0]
    assert [end - begin for begin, end in loop.times] == [11, 16, 11, 16, 11]


def test_without_a_loader_items_are_unknown_and_evaluation_is_told_by_the_mode(loop, program):
    def plain() -> None:
        program.compute()
        program.optimize()

    plain()
    plain()
    program.steps.mode(training=False, now_ns=program.now)
    program.works(100)
    program.steps.mode(training=True, now_ns=program.now)
    plain()
    assert loop.steps == [(0, None, 0.5)] * 2
    assert [end - begin for begin, end in loop.times] == [11, 11]
    assert loop.begins == [0, 1]
    assert "the items of a step are unknown" in loop.texts[0]


def test_a_frozen_part_set_to_evaluation_in_every_step_does_not_stop_the_clock(loop, program):
    for _ in range(3):
        program.steps.mode(training=False, now_ns=program.now)
        program.compute()
        program.optimize()
    assert len(loop.steps) == 2
    assert loop.begins == [0]


def test_of_several_optimizers_the_first_counts(loop, program):
    other = Optimizer()
    for _ in range(3):
        program.fetch()
        program.compute()
        program.optimize()
        program.compute(loss=0.7)
        program.optimize(other)
    assert len(loop.steps) == 2
    assert "other optimizers step too: Optimizer" in loop.texts[0]


def test_an_optimizer_that_takes_the_place_of_one_that_is_gone_counts(loop, program):
    first = Optimizer()
    program.train(2, optimizer=first)
    del first
    program.train(2)
    assert program.steps.steps == 4


def test_a_batch_of_unknown_size_makes_the_items_of_its_step_unknown(loop, program):
    program.train()
    program.fetch(items=8)
    program.fetch(items=None)
    program.compute()
    program.optimize()
    assert loop.steps == [(10, None, 0.5)]


def test_it_stops_where_the_next_batch_is_asked_for_when_enough_is_measured():
    loop = Recorded(enough=2)
    program = Program(loop)
    program.train(3)
    assert not program.steps.stopped
    program.train(5)
    assert program.steps.stopped
    assert len(loop.steps) == len(loop.times) == 2
