from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from small_repository import SmallRepository

from benchwright.regress.repository import Commit, GitRepository
from benchwright.regress.watch.control import Against, Control, controls, start_of_week

MONDAY = datetime(2026, 11, 16, tzinfo=UTC)
DAY_S, HOUR_S = 86_400, 3_600


class Weeks:
    """A repository whose commits are placed in weeks. `at`: the time of the next one, in hours from MONDAY."""

    def __init__(self, folder: Path) -> None:
        self.small = SmallRepository(folder)
        self.repository = GitRepository(folder)

    def commit(self, hours: float, subject: str = "c") -> Commit:
        self.small.time_s = int(MONDAY.timestamp() + hours * HOUR_S) - HOUR_S  # which `commit` adds
        return self.repository.commit(self.small.commit(subject))

    def control(self, treatment: Commit, against: Against = Against.WEEK, base: Commit | None = None) -> Control:
        return next(controls(self.repository, treatment, against, base))

    def all_controls(self, treatment: Commit, against: Against = Against.WEEK, base: Commit | None = None) -> list[str]:
        return [each.commit.hash for each in controls(self.repository, treatment, against, base)]


@pytest.fixture
def weeks(tmp_path: Path) -> Weeks:
    return Weeks(tmp_path / "repository")


@pytest.mark.parametrize(
    ("time", "monday"),
    [
        ("2026-11-16T00:00:00+00:00", "2026-11-16"),
        ("2026-11-15T23:59:59+00:00", "2026-11-09"),
        ("2026-11-22T23:59:59+00:00", "2026-11-16"),
        ("2026-11-16T00:30:00+01:00", "2026-11-09"),  # still Sunday in UTC
        ("2026-11-15T20:00:00-05:00", "2026-11-16"),  # Monday already
        ("2027-01-01T12:00:00+00:00", "2026-12-28"),
    ],
)
def test_a_week_begins_on_monday_in_utc(time: str, monday: str) -> None:
    assert start_of_week(datetime.fromisoformat(time)).isoformat() == f"{monday}T00:00:00+00:00"


def test_the_control_is_the_first_commit_of_the_week(weeks: Weeks) -> None:
    weeks.commit(-1)
    first, _, treatment = weeks.commit(0), weeks.commit(5), weeks.commit(30)
    found = weeks.control(treatment)
    assert (found.commit.hash, found.is_treatment) == (first.hash, False)
    assert found.why == "first commit of its week"


def test_the_first_commit_of_a_week_is_its_own_control(weeks: Weeks) -> None:
    weeks.commit(-1)
    treatment = weeks.commit(1)
    found = weeks.control(treatment)
    assert (found.commit.hash, found.is_treatment) == (treatment.hash, True)


def test_a_later_base_is_the_control_and_an_earlier_one_is_not(weeks: Weeks) -> None:
    before, first, base, treatment = weeks.commit(-5), weeks.commit(1), weeks.commit(2), weeks.commit(9)
    assert weeks.control(treatment, base=base).commit.hash == base.hash
    assert weeks.control(treatment, base=before).commit.hash == first.hash
    assert weeks.control(treatment, base=first).commit.hash == first.hash


def test_a_base_that_is_newer_than_the_treatment_is_no_control(weeks: Weeks) -> None:
    first, treatment, base = weeks.commit(1), weeks.commit(2), weeks.commit(3)
    assert weeks.control(treatment, base=base).commit.hash == first.hash


def test_a_base_that_is_the_treatment_makes_an_a_a(weeks: Weeks) -> None:
    weeks.commit(1)
    treatment = weeks.commit(2)
    assert weeks.control(treatment, base=treatment).is_treatment


def test_of_a_base_on_another_branch_the_time_decides(weeks: Weeks) -> None:
    weeks.commit(-50)
    weeks.small.git("checkout", "-q", "-b", "release")
    early, late = weeks.commit(-20, "release"), weeks.commit(4, "release")
    weeks.small.git("checkout", "-q", "main")
    first, treatment = weeks.commit(2), weeks.commit(8)
    assert weeks.control(treatment, base=late).commit.hash == late.hash
    assert weeks.control(treatment, base=early).commit.hash == first.hash


def test_merged_commits_are_no_controls(weeks: Weeks) -> None:
    weeks.commit(-30)
    weeks.small.git("checkout", "-q", "-b", "topic")
    weeks.commit(1, "on the topic")
    weeks.small.git("checkout", "-q", "main")
    first = weeks.commit(2, "on main")
    weeks.small.time_s = int(MONDAY.timestamp()) + 5 * HOUR_S
    weeks.small.git("merge", "-q", "--no-ff", "-m", "merge", "topic")
    merge = weeks.repository.commit("HEAD")
    assert weeks.control(merge).commit.hash == first.hash


def test_after_an_unusable_control_come_later_ones_and_the_treatment_is_last(weeks: Weeks) -> None:
    first, second, third = weeks.commit(1), weeks.commit(2), weeks.commit(3)
    assert weeks.all_controls(third) == [first.hash, second.hash, third.hash]
    assert weeks.all_controls(third, base=second) == [second.hash, third.hash]


def test_against_the_parent_weeks_do_not_matter(weeks: Weeks) -> None:
    first, second, treatment = weeks.commit(-30), weeks.commit(-20), weeks.commit(1)
    assert weeks.all_controls(treatment, Against.PARENT) == [second.hash, first.hash, treatment.hash]
    assert weeks.control(first, Against.PARENT).is_treatment
