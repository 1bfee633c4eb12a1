"""What changed between the beginning of a run and its resumption, in words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.provenance import (
    ABSENT,
    CodeRevision,
    History,
    Provenance,
    Repository,
    Resumption,
    differences,
    revision_words,
)

NAMES = st.text("abc/.", min_size=1, max_size=4)
DIGESTS = st.sampled_from([ABSENT, "1", "2"])
TABLES = st.dictionaries(NAMES, DIGESTS, max_size=4)
REPOSITORIES = st.builds(Repository, root=NAMES, base=DIGESTS, head=DIGESTS, changes=st.none() | TABLES)
PROVENANCES = st.builds(
    Provenance,
    files=TABLES,
    repositories=st.lists(REPOSITORIES, max_size=2, unique_by=lambda r: r.root).map(tuple),
    variables=TABLES,
    packages=st.dictionaries(NAMES, TABLES, max_size=2),
)


@given(PROVENANCES)
def test_nothing_differs_from_itself(found: Provenance) -> None:
    assert differences(found, found) == []


@given(TABLES, TABLES)
def test_a_file_that_changed_is_always_told(old: dict[str, str], new: dict[str, str]) -> None:
    said = differences(Provenance(files=old), Provenance(files=new))
    changed = [name for name in old | new if old.get(name, ABSENT) != new.get(name, ABSENT)]
    assert (said == []) == (changed == [])


def test_each_kind_of_change_has_its_words() -> None:
    old = Provenance(
        files={"/a.py": "1", "/b.py": "1"}, variables={"OMP_NUM_THREADS": "4"}, packages={"/py": {"torch": "2.1"}}
    )
    new = Provenance(
        files={"/a.py": "2", "/c.py": "1"}, variables={"LD_PRELOAD": "/x"}, packages={"/py": {"torch": "2.2"}}
    )
    assert differences(old, new) == [
        "/a.py was changed",
        "/b.py no longer exists",
        "/c.py is new",
        "environment: LD_PRELOAD was not set, is /x",
        "environment: OMP_NUM_THREADS was 4, is not set",
        "package torch was 2.1, is 2.2 (/py)",
    ]


def repository(head: str, **changes: str) -> Provenance:
    return Provenance(repositories=(Repository(root="/r", base="aaaa", head=head, changes=changes),))


def test_a_change_that_was_only_committed_is_no_change() -> None:
    assert differences(repository("aaaa", x="1"), repository("bbbb", x="1")) == []


def test_what_else_changed_in_a_repository_is_named() -> None:
    assert differences(repository("aaaa"), repository("bbbb", x="1")) == [
        "git /r: x was changed (HEAD was aaaa, is bbbb)"
    ]
    assert differences(repository("aaaa", x="1"), repository("aaaa")) == ["git /r: x was changed"]
    many = {f"f{n}": "1" for n in range(9)}
    assert differences(repository("aaaa"), repository("aaaa", **many))[-1] == "git /r: 4 more files changed"


def test_a_repository_that_git_could_not_tell_of_in_time_is_not_held_against_a_run() -> None:
    unknown = Provenance(repositories=(Repository(root="/r", base="aaaa", head="aaaa", changes=None),))
    assert differences(unknown, repository("bbbb", x="1")) == []
    assert differences(repository("aaaa"), unknown) == []


def test_a_file_that_is_started_is_told_once_though_its_repository_changed_by_it() -> None:
    old, new = (
        Provenance(files={"/r/x.py": digest}, repositories=repository("aaaa", **changes).repositories)
        for digest, changes in (("1", {}), ("2", {"x.py": "2"}))
    )
    assert differences(old, new) == ["/r/x.py was changed"]


def test_a_job_belongs_to_the_version_it_was_measured_in() -> None:
    resumed = [
        Resumption(when="", differences=(), before=before, provenance=Provenance())
        for before in (("R0",), ("R0", "R1", "R2"))
    ]
    history = History(began=Provenance(), resumed=tuple(resumed))
    assert [history.version_of(job) for job in ("R0", "R1", "R2", "R3")] == [0, 1, 1, 2]


def test_a_run_is_called_by_the_commit_of_its_code_and_never_by_that_of_benchwright() -> None:
    own = CodeRevision(root="/code", commit="1a2b3c4d5e6f", branch="main", modified=True)
    library = CodeRevision(root="/library", commit="9" * 40, packages=("library",))
    ours = CodeRevision(root="/benchwright", commit="8" * 40, packages=("benchwright",))
    assert revision_words((own, library, ours)) == "main 1a2b3c4d5e+"
    assert revision_words((ours, library)) == "library 9999999999"
    assert revision_words((ours,)) == ""
