"""Loops of every kind, as they appear in the stream."""

from __future__ import annotations

import itertools

import pytest


def test_a_loop_is_recorded_with_its_steps_waits_and_items(measured):
    record = measured("""
        import time
        from benchprobe import iterate
        def data():
            for i in range(20):
                time.sleep(0.004)
                yield i
        for i in iterate("train", data(), batch_size=8):
            time.sleep(0.002)
    """)
    assert record.steps() == 20
    assert record.one("loop")["name"] == "train"
    assert record.one("loop_end")["how"] == "exhausted"
    events = record.all("steps")
    assert all(event["items"] == 8 for event in events)
    for event in events:
        for step, wait in zip(event["step_ns"], event["wait_ns"], strict=True):
            assert wait >= 4_000_000
            assert step - wait >= 2_000_000


def test_the_time_of_consecutive_batches_never_overlaps(measured):
    record = measured("""
        from benchprobe import iterate
        for i in iterate("train", range(100_000)): pass
    """)
    events = record.all("steps")
    assert record.steps() == 100_000
    for before, after in itertools.pairwise(events):
        assert after["first"] == before["first"] + len(before["step_ns"])
        assert after["t"] >= before["t"] + sum(before["step_ns"])


def test_values_given_in_nested_loops_go_to_the_innermost_one_that_runs(measured):
    record = measured("""
        from benchprobe import iterate, give
        give(where="before")
        for i in iterate("train", range(3)):
            give(loss=float(i))
            for j in iterate("inner", range(2)):
                give(x=10 * i + j)
            give(y=i)
        give(where="after")
    """)
    assert record.given("loss") == [(0, 0.0), (1, 1.0), (2, 2.0)]
    assert record.given("y") == [(0, 0), (1, 1), (2, 2)]
    assert [e["given"]["x"][1] for e in record.all("steps") if "x" in e.get("given", {})] == [
        [0, 1],
        [10, 11],
        [20, 21],
    ]
    assert [e["values"]["where"] for e in record.all("give")] == ["before", "after"]
    assert {e["parent"] for e in record.all("loop", name="inner")} == {record.loop("train")}


def test_loops_that_take_turns_keep_their_steps_apart(measured):
    record = measured("""
        from benchprobe import iterate, give
        for a, b in zip(iterate("a", range(50)), iterate("b", range(50))):
            give(x=a)
        give(x="outside")
    """)
    assert record.steps("a") == 50
    assert record.steps("b") == 50
    assert len(record.given("x", "b")) == 50
    assert record.one("give")["values"] == {"x": "outside"}


def test_a_break_ends_the_last_step(measured):
    record = measured("""
        import time
        from benchprobe import iterate, give
        for i in iterate("train", range(100)):
            give(i=i)
            if i == 6:
                time.sleep(0.05)
                break
        give(done=True)
    """)
    assert record.steps() == 7
    assert record.one("loop_end")["how"] == "break"
    assert record.all("steps")[-1]["step_ns"][-1] >= 50_000_000
    assert record.one("give")["values"] == {"done": True}


def test_a_return_from_inside_the_loop_ends_the_last_step(measured):
    record = measured("""
        from benchprobe import iterate
        def f():
            for i in iterate("train", range(100)):
                if i == 6:
                    return i * 2
        assert f() == 12
    """)
    assert record.steps() == 7


def test_a_break_through_a_wrapping_generator_ends_the_last_step(measured):
    record = measured("""
        from benchprobe import iterate
        def bar(iterable):
            for x in iterable:
                yield x
        for n, i in enumerate(bar(iterate("train", range(100)))):
            if n == 6:
                break
    """)
    assert record.steps() == 7


def test_a_step_that_raised_is_not_counted_but_what_it_gave_is_kept(measured):
    record = measured("""
        from benchprobe import iterate, give
        try:
            for i in iterate("train", range(100)):
                give(loss=float(i))
                if i == 6:
                    give(loss=float("nan"), hint="bad")
                    raise ValueError
        except ValueError:
            give(after=1)
    """)
    assert record.steps() == 6
    assert record.one("loop_end")["how"] == "left"
    leftover = [e["values"] for e in record.all("give")]
    assert leftover[0] == {"loss": 6.0}
    assert leftover[1]["hint"] == "bad"
    assert leftover[2] == {"after": 1}


def test_a_step_that_raised_in_a_wrapped_loop_is_not_counted(measured):
    record = measured("""
        from benchprobe import iterate
        def bar(iterable):
            for x in iterable:
                yield x
        try:
            for i in bar(iterate("train", range(100))):
                if i == 6:
                    int("x")
        except ValueError:
            pass
    """)
    assert record.steps() == 6


def test_an_error_of_the_iterable_reaches_the_program_unchanged(measured):
    record = measured("""
        from benchprobe import iterate
        def data():
            yield from range(5)
            raise OSError("worker died")
        try:
            for i in iterate("train", data()): pass
        except OSError as error:
            assert error.args == ("worker died",)
        else:
            raise AssertionError
        try:
            for i in iterate("train", 5): pass
        except TypeError as error:
            assert "int" in str(error)
    """)
    assert record.steps() == 5
    assert [e["how"] for e in record.all("loop_end")] == ["left", "left"]


def test_async_for_is_recorded_alike(measured):
    record = measured("""
        import asyncio
        from benchprobe import iterate, give
        async def data():
            for i in range(30):
                await asyncio.sleep(0.001)
                yield i
        async def main():
            async for i in iterate("train", data(), batch_size=2):
                give(i=i)
                await asyncio.sleep(0.001)
            async for i in iterate("other", data()):
                if i == 3:
                    break
            give(after=1)
        asyncio.run(main())
    """)
    assert record.steps("train") == 30
    assert [value for _, value in record.given("i")] == list(range(30))
    assert record.steps("other") == 4
    assert [e["how"] for e in record.all("loop_end")] == ["exhausted", "break"]
    assert record.one("give")["values"] == {"after": 1}


def test_async_tasks_running_at_once_keep_their_values_apart(measured):
    record = measured("""
        import asyncio
        from benchprobe import iterate, give
        async def data(n):
            for i in range(n):
                await asyncio.sleep(0)
                yield i
        async def work(name):
            async for i in iterate(name, data(20)):
                await asyncio.sleep(0)
                give(who=name)
        async def main():
            await asyncio.gather(work("a"), work("b"))
        asyncio.run(main())
    """)
    for name in ("a", "b"):
        assert [value for _, value in record.given("who", name)] == [name] * 20


def test_threads_with_their_own_loops_keep_their_values_apart(measured):
    record = measured("""
        import threading
        from benchprobe import iterate, give
        def work(name):
            for i in iterate(name, range(2000)):
                give(i=i, who=name)
        threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(4)]
        for t in threads: t.start()
        for t in threads: t.join()
    """)
    for name in ("t0", "t1", "t2", "t3"):
        assert record.given("who", name) == [(i, name) for i in range(2000)]
        assert [value for _, value in record.given("i", name)] == list(range(2000))


def test_len_next_and_a_second_passage_work_as_with_the_iterable_itself(measured):
    record = measured("""
        from benchprobe import iterate
        loop = iterate("train", [1, 2, 3], report_batch=True, batch_size=64)
        assert len(loop) == 3
        assert list(loop) == [1, 2, 3]
        assert list(loop) == [1, 2, 3]
        assert next(iterate("other", iter([7]))) == 7
        assert bool(iterate("other", (x for x in [])))
    """)
    assert record.steps() == 6
    assert [e["steps"] for e in record.all("loop_end", loop=1)] == [3, 6]


def test_a_batch_is_not_kept_alive_by_the_loop(measured):
    record = measured("""
        import weakref
        from benchprobe import give, iterate
        class Batch: pass
        def data():
            last = None
            for i in range(5):
                give(kept=0 if last is None or last() is None else 1)
                batch = Batch()
                last = weakref.ref(batch)
                yield batch
                del batch
        for batch in iterate("train", data(), batch_size=1):
            del batch
    """)
    assert [kept for _, kept in record.given("kept")] == [0] * 5


def test_phases_are_recorded_as_context_and_as_decorator(measured):
    record = measured("""
        from benchprobe import phase
        @phase("load")
        def load(): pass
        load()
        with phase("validate"): pass
    """)
    edges = [(e["name"], e["edge"]) for e in record.all("phase")]
    assert edges == [("load", "begin"), ("load", "end"), ("validate", "begin"), ("validate", "end")]


# Each one that is spawned imports torch.
@pytest.mark.parametrize(("context", "epochs"), [("fork", 2), pytest.param("spawn", 1, marks=pytest.mark.long)])
def test_workers_of_a_data_loader_leave_the_stream_intact(measured, measured_with_torch, context, epochs):
    run = measured_with_torch if context == "fork" else measured
    record = run(f"""
        import torch
        from torch.utils.data import DataLoader, Dataset
        from benchprobe import iterate, give
        class Data(Dataset):
            def __len__(self): return 50
            def __getitem__(self, i):
                give(worker=i)
                return torch.zeros(3), i
        if __name__ == "__main__":
            loader = DataLoader(Data(), batch_size=8, num_workers=2, multiprocessing_context="{context}")
            for epoch in range({epochs}):
                for x, y in iterate("train", loader):
                    give(loss=x.mean())
    """)
    assert record.junk == []
    assert record.steps() == 7 * epochs
    items = [n for e in record.all("steps", loop=1) for n in _list(e["items"], len(e["step_ns"]))]
    assert items == [8, 8, 8, 8, 8, 8, 2] * epochs
    assert sorted(e["values"]["worker"] for e in record.all("give")) == sorted(list(range(50)) * epochs)


@pytest.mark.long
def test_what_a_worker_of_a_data_loader_goes_through_is_not_cut_by_the_stop_rule(measured):
    pytest.importorskip("torch")
    record = measured("""
        import torch
        from torch.utils.data import DataLoader, IterableDataset
        from benchprobe import iterate
        class Data(IterableDataset):
            def __iter__(self): return iter(iterate("read", [torch.zeros(3)] * 40))
        if __name__ == "__main__":
            loader = DataLoader(Data(), batch_size=8, num_workers=1, multiprocessing_context="spawn")
            print(sum(len(x) for x in iterate("train", loader)))
    """, stop={"steps": 6})  # fmt: skip
    assert record.output == "40\n"
    assert record.steps("read") == 40


def _list(items, count):
    return items if isinstance(items, list) else [items] * count


def test_what_the_items_are_is_in_the_stream(measured):
    record = measured("""
        from benchprobe import iterate
        for _ in iterate("train", range(4), batch_size=8, unit=" tokens/s "): pass
        for _ in iterate("other", range(4)): pass
    """)
    assert [event["unit"] for event in record.all("loop")] == ["tokens", None]
    assert not record.all("message")


def test_a_unit_without_a_batch_size_says_how_it_is_counted(measured):
    record = measured("""
        from benchprobe import iterate
        for _ in range(2):
            for _ in iterate("train", [1, 2, 3], unit="tokens"): pass
    """)
    (said,) = record.all("message")
    assert said["severity"] == "info"
    assert said["text"].startswith("loop 'train': tokens are counted by the size of each batch")
