"""Choosing a store by its URL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchwright.stores import base
from benchwright.stores.sql_store import SqlStore


def test_the_seam_is_imported_without_sqlalchemy() -> None:
    code = "import sys, benchwright.stores.base\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"sqlalchemy", "alembic", "psycopg"} & set(done.stdout.split())


def test_an_existing_store_is_opened_without_alembic(tmp_path: Path) -> None:
    base.open_store(str(tmp_path / "store.db")).close()
    code = (
        "import sys\nfrom benchwright.stores.base import open_store, RunFilter\n"
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
    import importlib

    for place in base.BUILT_IN.values():
        module, _, name = place.partition(":")
        assert callable(getattr(importlib.import_module(module), name))
