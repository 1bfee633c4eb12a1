from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchwright.artifacts.model_cache import model_cache_folder
from benchwright.core.errors import InvalidInput


def test_a_cache_in_a_git_checkout_is_refused_unless_forced(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path / "project"], check=True)
    inside = tmp_path / "project" / "deep" / "models"
    with pytest.raises(InvalidInput, match=f"is inside the git checkout {tmp_path}/project.*--force-model-cache"):
        model_cache_folder(inside)
    assert model_cache_folder(inside, forced=True) == inside
    assert model_cache_folder(tmp_path / "models") == tmp_path / "models"


def test_a_link_into_a_checkout_is_noticed(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path / "project"], check=True)
    (tmp_path / "link").symlink_to(tmp_path / "project")
    with pytest.raises(InvalidInput, match="git checkout"):
        model_cache_folder(tmp_path / "link" / "models")


def test_a_worktree_has_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: elsewhere")
    with pytest.raises(InvalidInput, match="git checkout"):
        model_cache_folder(tmp_path / "models")


def test_a_file_is_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="is not a folder"):
        model_cache_folder(tmp_path / "file")
