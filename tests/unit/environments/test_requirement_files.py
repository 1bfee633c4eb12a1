"""Requirements files are read as pip reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchwright.core.errors import InvalidInput
from benchwright.environments.requirement_files import meaningful_lines, package_name, read_requirements


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("alpha", "alpha"),
        ("Alpha_Beta.Gamma>=2", "alpha-beta-gamma"),
        ("alpha[extra]==1 ; python_version > '3'", "alpha"),
        ("alpha @ https://example.test/alpha.whl", "alpha"),
        ("--index-url https://example.test", None),
        ("-e .", None),
        ("./here", None),
        ("/there/alpha.whl", None),
        ("https://example.test/alpha.whl", None),
    ],
)
def test_the_package_a_line_asks_for(text: str, name: str | None) -> None:
    assert package_name(text) == name


def test_included_files_are_followed_and_every_package_has_its_place(tmp_path: Path) -> None:
    write(tmp_path, "more/base.in", "\n# first\nbeta\n")
    write(tmp_path, "limits.txt", "gamma<2\n")
    path = write(tmp_path, "requirements.in", "alpha>=1\n-r more/base.in\n-climits.txt\n")
    read = read_requirements(path)
    assert {name: (Path(m.file).name, m.line) for name, m in read.packages.items()} == {
        "alpha": ("requirements.in", 1),
        "beta": ("base.in", 3),
        "gamma": ("limits.txt", 1),
    }


def test_a_change_in_an_included_file_changes_the_digest(tmp_path: Path) -> None:
    base = write(tmp_path, "base.in", "beta\n")
    path = write(tmp_path, "requirements.in", "-r base.in\n")
    before = read_requirements(path).digest
    Path(base).write_text("beta==2\n")
    assert read_requirements(path).digest != before


def test_files_that_include_each_other_are_read_once(tmp_path: Path) -> None:
    write(tmp_path, "b.in", "beta\n--requirement=a.in\n")
    path = write(tmp_path, "a.in", "alpha\n--requirement b.in\n")
    assert set(read_requirements(path).packages) == {"alpha", "beta"}


def test_a_missing_included_file_is_placed(tmp_path: Path) -> None:
    path = write(tmp_path, "requirements.in", "alpha\n-r nowhere.in\n")
    with pytest.raises(InvalidInput) as caught:
        read_requirements(path)
    assert (caught.value.where, caught.value.line) == (path, 2)
    assert "nowhere.in" in str(caught.value)


def test_bytes_that_are_no_text_are_said_so(tmp_path: Path) -> None:
    (tmp_path / "requirements.in").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="UTF-8"):
        read_requirements(str(tmp_path / "requirements.in"))


def test_a_file_of_comments_is_empty(tmp_path: Path) -> None:
    assert read_requirements(write(tmp_path, "requirements.in", "# nothing\n\n   # at all\n")).is_empty


def test_the_same_local_path_in_two_folders_is_not_the_same_requirement(tmp_path: Path) -> None:
    one, other = (write(tmp_path, f"{name}/requirements.in", "-e .\n") for name in ("one", "other"))
    assert read_requirements(one).digest != read_requirements(other).digest
    alike = [write(tmp_path, f"{name}/plain.in", "alpha\n") for name in ("one", "other")]
    assert len({read_requirements(path).digest for path in alike}) == 1


def test_continued_lines_count_as_one() -> None:
    text = "alpha==1 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\nbeta  # why\n"
    assert meaningful_lines(text) == [(1, "alpha==1 --hash=sha256:1 --hash=sha256:2"), (4, "beta")]


LINES = st.lists(
    st.sampled_from(["alpha", "beta>=2", "gamma[x]==1.0", "--no-index", "delta ; sys_platform == 'linux'"])
)
NOISE = st.sampled_from(["", "   ", "# a comment", "\t# another", "#"])


@given(LINES, st.lists(st.tuples(st.integers(0, 20), NOISE)))
def test_comments_and_empty_lines_mean_nothing(lines: list[str], noise: list[tuple[int, str]]) -> None:
    noisy = [line + "   # said so" for line in lines]
    for at, text in noise:
        noisy.insert(min(at, len(noisy)), text)
    assert [line for _, line in meaningful_lines("\n".join(noisy))] == lines


@given(st.text())
def test_any_text_can_be_split_into_lines(text: str) -> None:
    for number, line in meaningful_lines(text):
        assert 1 <= number <= len(text.splitlines())
        assert line.strip()
        package_name(line)
