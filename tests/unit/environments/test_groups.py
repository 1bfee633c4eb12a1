"""Which benchmarks share an environment, and what it is made from."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from benchwright.core.benchmark import Benchmark
from benchwright.core.errors import InvalidInput
from benchwright.environments.groups import InstallGroup, groups_of, requirement_paths
from benchwright.environments.vendor import constraints_file


def only(*benchmarks: Benchmark, **options: Any) -> InstallGroup:
    (group,) = groups_of(benchmarks, arch="cpu", **options)
    return group


def test_one_group_for_each_install_group_in_the_order_of_the_suite(benchmark_of: Any) -> None:
    benchmarks = [
        benchmark_of(n, {"requirements.in": n}, install_group=g) for n, g in (("a", "x"), ("b", "y"), ("c", "x"))
    ]
    groups = groups_of(benchmarks, arch="cpu")
    assert [(g.name, [Path(f.path).parent.name for f in g.files]) for g in groups] == [("x", ["a", "c"]), ("y", ["b"])]


def test_pinned_requirements_of_the_arch_are_the_default(benchmark_of: Any) -> None:
    files = {"requirements.in": "alpha", "requirements.cpu.txt": "alpha==1.0", "requirements.cuda.txt": "alpha==2.0"}
    benchmark = benchmark_of("a", files, variant=None)
    assert Path(only(benchmark).files[0].path).name == "requirements.cpu.txt"
    assert Path(only(benchmark, variant="cuda").files[0].path).name == "requirements.cuda.txt"
    assert Path(only(benchmark, variant="unpinned").files[0].path).name == "requirements.in"


def test_requirements_that_are_not_pinned_are_said_with_both_remedies(benchmark_of: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        only(benchmark_of("a", {"requirements.in": "alpha"}, variant=None))
    assert "requirements.cpu.txt" in str(caught.value)
    assert "benchwright pin SUITE --select a --variant cpu" in str(caught.value)
    assert "install_variant: unpinned" in str(caught.value)


@pytest.mark.parametrize("files", [{}, {"requirements.in": "# none\n"}])
def test_a_folder_that_asks_for_nothing_needs_no_pins(benchmark_of: Any, files: dict[str, str]) -> None:
    group = only(benchmark_of("a", files, variant=None))
    assert group.files == ()
    assert group.recipe.added == ()


def test_a_requirements_file_that_is_no_in_file_is_its_own_pin(benchmark_of: Any) -> None:
    benchmark = benchmark_of("a", {"needs.txt": "alpha==1"}, requirements=("needs.txt",), variant=None)
    assert [Path(p).name for p in requirement_paths(benchmark.environment, "cuda")] == ["needs.txt"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"variant": "unpinned"}, {"variant": "cuda"}),
        ({"python": "3.11"}, {"python": "3.12"}),
        ({"python": "3.11"}, {}),
    ],
)
def test_members_that_disagree_are_both_named(benchmark_of: Any, one: dict[str, Any], other: dict[str, Any]) -> None:
    benchmarks = [benchmark_of("first", install_group="x", **one), benchmark_of("second", install_group="x", **other)]
    with pytest.raises(InvalidInput) as caught:
        groups_of(benchmarks, arch="cpu")
    assert "first" in str(caught.value)
    assert "second" in str(caught.value)


def test_a_package_is_added_where_it_is_needed_and_no_file_names_it(benchmark_of: Any) -> None:
    group = only(benchmark_of("a", {"requirements.in": "alpha"}, packages=("voir",)))
    assert group.recipe.added == ("voir",)
    assert group.notes == ("a: requirements lack voir; adding it",)
    asked = only(benchmark_of("b", {"requirements.in": "Voir>=0.2"}, packages=("voir",)))
    assert (asked.recipe.added, asked.notes) == ((), ())


def test_comments_do_not_change_what_an_environment_is_but_versions_do(benchmark_of: Any) -> None:
    before = only(benchmark_of("a", {"requirements.in": "alpha\n"})).recipe.identity
    assert only(benchmark_of("a", {"requirements.in": "# why\nalpha  # because\n"})).recipe.identity == before
    assert only(benchmark_of("a", {"requirements.in": "alpha<2\n"})).recipe.identity != before


@pytest.mark.parametrize("change", [{"constraints": ("alpha<2",)}, {"pip_args": ("--pre",)}])
def test_constraints_and_arguments_for_pip_change_it(benchmark_of: Any, change: dict[str, Any]) -> None:
    plain = only(benchmark_of("a", {"requirements.in": "alpha"}))
    assert only(benchmark_of("a", **change)).recipe.identity != plain.recipe.identity


def test_a_constraints_file_changes_it_only_by_what_it_says(benchmark_of: Any, tmp_path: Path) -> None:
    limits = tmp_path / "limits.txt"
    limits.write_text("# nothing yet\n")
    plain = only(benchmark_of("a", {"requirements.in": "alpha"})).recipe
    assert only(benchmark_of("a"), constraint_files=[str(limits)]).recipe == plain
    limits.write_text("alpha<2\n")
    assert only(benchmark_of("a"), constraint_files=[str(limits)]).recipe != plain


def test_the_interpreter_is_ours_unless_the_entry_names_one(benchmark_of: Any) -> None:
    assert only(benchmark_of("a")).recipe.python == sys.implementation.cache_tag
    assert only(benchmark_of("b", python="3.12")).python == "3.12"


@pytest.mark.parametrize("name", ["a/b", "..", ".hidden", "", "with space"])
def test_a_name_that_is_no_folder_is_refused(benchmark_of: Any, name: str) -> None:
    with pytest.raises(InvalidInput, match="install_group"):
        groups_of([benchmark_of("a", install_group=name)], arch="cpu")


def test_constraints_are_looked_for_beside_the_suite_and_above(tmp_path: Path) -> None:
    suite = tmp_path / "project" / "config"
    suite.mkdir(parents=True)
    above = tmp_path / "project" / "constraints" / "cuda.txt"
    above.parent.mkdir()
    above.write_text("alpha<2\n")
    assert constraints_file("cuda", [str(suite)]) == str(above)
    packaged = constraints_file("rocm", [str(suite)])
    assert packaged is not None
    assert "environments" in packaged
    assert constraints_file("unheard-of", [str(suite)]) is None
