"""Our voirfile: ranks of a program run by voir leave together."""

from __future__ import annotations

import threading
import time

from counters import CountersInMemory

from benchwright.compat.voir.voirfile import RankAgreement


class Ranks:
    """Ranks of a program run by voir, as threads that take turns as a collective would make them."""

    def __init__(self, size: int, instrumented: int) -> None:
        store = CountersInMemory()
        self.together = threading.Barrier(size)
        self.left: dict[int, int] = {}
        self.parts = [
            RankAgreement("voir", lambda rank=rank: (store, rank, size), patience_s=0.1) for rank in range(instrumented)
        ]

    def live(self, rank: int, enough: int, steps: int) -> None:
        part = self.parts[rank] if rank < len(self.parts) else None
        for step in range(steps):
            try:
                self.together.wait(60)
                time.sleep(0.005)
            except threading.BrokenBarrierError:
                return
            if part is not None:
                if step == enough:
                    part.say_done()
                if not part.go_on(lambda: True):
                    self.left[rank] = step
                    return

    def run(self, *enough: int, steps: int = 400) -> None:
        threads = [threading.Thread(target=self.live, args=(rank, n, steps)) for rank, n in enumerate(enough)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def test_ranks_run_by_voir_leave_at_the_same_step_once_all_have_enough():
    ranks = Ranks(3, instrumented=3)
    ranks.run(10, 25, 17)
    assert len(set(ranks.left.values())) == 1
    assert set(ranks.left) == {0, 1, 2}
    assert 25 <= ranks.left[0] < 399


def test_a_rank_that_is_instrumented_alone_knows_and_never_leaves_by_itself():
    ranks = Ranks(2, instrumented=1)
    ranks.run(10, 10, steps=20)
    assert ranks.left == {}
    assert ranks.parts[0].is_alone
    assert not ranks.parts[0].leaves_by_step


def test_ranks_without_a_group_are_on_their_own():
    part = RankAgreement("voir", lambda: None)
    assert part.go_on(lambda: True)
    part.say_done()
    assert not part.is_alone
    assert not part.leaves_by_step


def test_a_store_that_is_gone_ends_no_program(capsys):
    class Gone:
        def add(self, key: str, amount: int) -> int:
            raise OSError("connection closed")

    part = RankAgreement("voir", lambda: (Gone(), 0, 2))
    assert part.go_on(lambda: True)
    assert part.go_on(lambda: True)
    assert part.leaves_by_step
    assert "cannot reach the other ranks (OSError: connection closed)" in capsys.readouterr().err
