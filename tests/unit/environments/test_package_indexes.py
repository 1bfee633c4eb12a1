"""pip's configuration reaches uv."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchwright.environments.package_indexes import PackageIndexes, configured_indexes


def configuration(folder: Path, text: str) -> Path:
    path = folder / "pip" / "pip.conf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """A user without any configuration but what a test writes; the machine's own global file may still be there."""
    return {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "own"), "XDG_CONFIG_DIRS": str(tmp_path / "all")}


def test_the_users_file_overrides_the_global_one_and_variables_override_both(
    home: dict[str, str], tmp_path: Path
) -> None:
    configuration(tmp_path / "all", "[global]\nindex-url = https://global.test\ncert = /global.pem\n")
    configuration(tmp_path / "own", "[global]\nindex_url = https://own.test\nfind-links =\n    /a\n    /b\n")
    found = configured_indexes(home)
    assert found.index_url == "https://own.test"
    assert found.find_links == ("/a", "/b")
    assert configured_indexes({**home, "PIP_INDEX_URL": "https://now.test"}).index_url == "https://now.test"
    assert configured_indexes({**home, "PIP_FIND_LINKS": "/c /d"}).find_links == ("/c", "/d")


def test_the_section_of_install_counts_more(home: dict[str, str], tmp_path: Path) -> None:
    configuration(
        tmp_path / "own", "[install]\nindex-url = https://install.test\n[global]\nindex-url = https://g.test\n"
    )
    assert configured_indexes(home).index_url == "https://install.test"


def test_a_named_file_replaces_the_users(home: dict[str, str], tmp_path: Path) -> None:
    configuration(tmp_path / "own", "[global]\nindex-url = https://own.test\ntrusted-host = own.test\n")
    named = configuration(tmp_path / "named", "[global]\nindex-url = https://named.test\nno-index = true\n")
    found = configured_indexes({**home, "PIP_CONFIG_FILE": str(named)})
    assert found.index_url == "https://named.test"
    assert "own.test" not in found.trusted_host
    assert found.no_index


def test_no_configuration_at_all(home: dict[str, str], tmp_path: Path) -> None:
    configuration(tmp_path / "own", "[global]\nindex-url = https://own.test\n")
    assert configured_indexes({**home, "PIP_CONFIG_FILE": os.devnull}) == PackageIndexes()


@pytest.mark.parametrize("content", [b"no section = 1\n", b"[global\n", b"\xff\xfe\x00", b"[global]\n=\n"])
def test_a_broken_file_says_nothing(home: dict[str, str], tmp_path: Path, content: bytes) -> None:
    named = configuration(tmp_path / "named", "")
    named.write_bytes(content)
    assert configured_indexes({**home, "PIP_CONFIG_FILE": str(named)}).index_url is None


def test_what_uv_gets() -> None:
    indexes = PackageIndexes(
        index_url="https://first.test",
        extra_index_url=("https://more.test", "https://most.test"),
        find_links=("/wheels", "https://links.test"),
        trusted_host=("first.test",),
        cert="/ca.pem",
        timeout="180",
    )
    assert indexes.for_uv({}) == {
        "UV_DEFAULT_INDEX": "https://first.test",
        "UV_INDEX": "https://more.test https://most.test",
        "UV_FIND_LINKS": "/wheels,https://links.test",
        "UV_INSECURE_HOST": "first.test",
        "UV_HTTP_TIMEOUT": "180",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "SSL_CERT_FILE": "/ca.pem",
    }


def test_what_the_user_told_uv_stays() -> None:
    indexes = PackageIndexes(index_url="https://first.test", extra_index_url=("https://more.test",))
    told = {"UV_INDEX_URL": "https://mine.test", "UV_INDEX": "https://x.test", "UV_INDEX_STRATEGY": "first-index"}
    assert indexes.for_uv(told) == {}


def test_no_index_leaves_only_links() -> None:
    indexes = PackageIndexes(index_url="https://first.test", find_links=("/wheels",), no_index=True)
    assert "UV_DEFAULT_INDEX" not in indexes.for_uv({})
    assert indexes.uv_options == ["--no-index"]
    named = indexes.with_options(None, ("https://vendor.test",), ())
    assert named.uv_options == []
    assert named.for_uv({})["UV_INDEX"] == "https://vendor.test"


def test_relative_links_are_meant_from_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert PackageIndexes(find_links=("wheels",)).for_uv({})["UV_FIND_LINKS"] == str(tmp_path / "wheels")
    assert PackageIndexes(find_links=("wheels",)).for_pip()["PIP_FIND_LINKS"] == str(tmp_path / "wheels")
