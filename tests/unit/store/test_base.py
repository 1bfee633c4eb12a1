"""Choosing a store by its URL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchwright.core.errors import InvalidInput
from benchwright.store import base
from benchwright.store.sql_store import SqlStore


def test_the_seam_is_imported_without_sqlalchemy() -> None:
    code = "import sys, benchwright.store.base\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sqlalchemy", "alembic", "psycopg"} & set(done.stdout.split())


def test_an_existing_store_is_opened_without_alembic(tmp_path: Path) -> None:
    base.open_store(str(tmp_path / "store.db")).close()
    code = (
        "import sys\nfrom benchwright.store.base import open_store, RunFilter\n"
        "open_store(sys.argv[1]).runs(RunFilter())\nprint(*sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "store.db")], capture_output=True, text=True, check=True
    )
    assert "sqlalchemy" in done.stdout.split()
    assert not {"alembic", "psycopg", "sqlalchemy.orm"} & set(done.stdout.split())


@pytest.mark.parametrize("form", ["{}", "sqlite:///{}"])
def test_a_path_and_a_url_name_the_same_store(tmp_path: Path, form: str) -> None:
    path = tmp_path / "new folder" / "100%.db"
    with base.open_store(form.format(path)) as store:
        assert isinstance(store, SqlStore)
        assert store.where == str(path)
    assert path.exists()


def test_a_relative_path_is_below_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base.open_store("here.db").close()
    assert [p.name for p in tmp_path.iterdir()] == ["here.db"]


def test_every_built_in_variant_is_there() -> None:
    for name in base.STORES.built_in:
        assert callable(base.STORES.load(name))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql:u:s3cret@h/db",
        "postgresql:/u:s3cret@h/db",
        "postgresql//u:s3cret@h/db",
        "postgresql+psycopg:u:s3cret@h",
        "POSTGRES:u:s3cret@h",
        "sqlite:store-s3cret.db",
        "u:s3cret@h/db",
        "mysql://u:s3cret@h/db",
        "odd name://u:s3cret@h/db",
        "postgresql://u:s3cret@h:port/db",
    ],
)
def test_what_is_no_url_is_refused_without_its_password_and_makes_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        base.open_store(url)
    assert "s3cret" not in str(caught.value)
    assert caught.value.remedy
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["runs@home.db", "2026-11-15_04:18:00/u@h.db", "a:b/c@d.db", "postgresql.db"])
def test_a_path_with_odd_characters_is_still_a_path(path: str) -> None:
    assert base.check_url(path) == "sqlite"
