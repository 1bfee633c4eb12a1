"""Where packages come from: pip's configuration, passed on to uv, which does not read it."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Mapping

import msgspec

_WORDS = ("index-url", "cert", "proxy", "timeout")
_LISTS = ("extra-index-url", "find-links", "trusted-host", "constraint")


class PackageIndexes(msgspec.Struct, frozen=True, kw_only=True):
    """`index_url` None: the installer's own default."""

    index_url: str | None = None
    extra_index_url: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_host: tuple[str, ...] = ()
    constraint: tuple[str, ...] = ()
    cert: str | None = None
    proxy: str | None = None
    timeout: str | None = None
    no_index: bool = False

    def for_uv(self, environment: Mapping[str, str]) -> dict[str, str]:
        """As variables, so that passwords in URLs do not show in process lists. The user's own uv settings win.

        pip takes the best version of all indexes; uv would take the first index that has any.
        """
        wanted = {
            "UV_DEFAULT_INDEX": "" if self.no_index else self.index_url or "",
            "UV_INDEX": "" if self.no_index else " ".join(self.extra_index_url),
            "UV_FIND_LINKS": ",".join(map(_absolute, self.find_links)),
            "UV_INSECURE_HOST": " ".join(self.trusted_host),
            "UV_HTTP_TIMEOUT": (self.timeout or "").partition(".")[0],
            "UV_INDEX_STRATEGY": "unsafe-best-match",
            "SSL_CERT_FILE": self.cert or "",
            "ALL_PROXY": self.proxy or "",
        }
        synonyms = {"UV_DEFAULT_INDEX": "UV_INDEX_URL", "UV_INDEX": "UV_EXTRA_INDEX_URL"}
        return {
            name: value
            for name, value in wanted.items()
            if value and not environment.get(name) and not environment.get(synonyms.get(name, name))
        }

    @property
    def uv_options(self) -> list[str]:
        """Options of uv that have no variable."""
        found = ["--no-index"] if self.no_index else []
        for path in self.constraint:
            found += ["-c", _absolute(path)]
        return found

    def for_pip(self) -> dict[str, str]:
        """As variables, because the new environment's pip would read only part of the configuration."""
        wanted = {
            "PIP_INDEX_URL": self.index_url or "",
            "PIP_EXTRA_INDEX_URL": " ".join(self.extra_index_url),
            "PIP_FIND_LINKS": " ".join(map(_absolute, self.find_links)),
            "PIP_TRUSTED_HOST": " ".join(self.trusted_host),
            "PIP_CONSTRAINT": " ".join(map(_absolute, self.constraint)),
            "PIP_CERT": self.cert or "",
            "PIP_PROXY": self.proxy or "",
            "PIP_NO_INDEX": "1" if self.no_index else "",
        }
        return {name: value for name, value in wanted.items() if value}

    def with_options(self, index_url: str | None, indexes: tuple[str, ...], links: tuple[str, ...]) -> PackageIndexes:
        """The command line comes first; an index it names is used even if pip is configured to use none."""
        return msgspec.structs.replace(
            self,
            index_url=index_url or self.index_url,
            extra_index_url=(*indexes, *self.extra_index_url),
            find_links=(*links, *self.find_links),
            no_index=self.no_index and not index_url and not indexes,
        )


def configured_indexes(environment: Mapping[str, str]) -> PackageIndexes:
    """pip's configuration files in order, then PIP_* variables; the last setting wins."""
    found: dict[str, str] = {}
    for path in _configuration_files(environment):
        found |= _read(path)
    for name, value in environment.items():
        if name.startswith("PIP_") and value:
            found[_key(name.removeprefix("PIP_"))] = value
    if "default-timeout" in found:
        found.setdefault("timeout", found["default-timeout"])
    given: dict[str, str | tuple[str, ...]] = {k.replace("-", "_"): found[k] for k in _WORDS if found.get(k)}
    given |= {k.replace("-", "_"): tuple(found[k].split()) for k in _LISTS if found.get(k)}
    no_index = found.get("no-index", "").lower() in ("1", "true", "yes", "on", "t", "y")
    return msgspec.convert({**given, "no_index": no_index}, PackageIndexes)


def _configuration_files(environment: Mapping[str, str]) -> list[str]:
    """Global, then the user's, then the environment's; $PIP_CONFIG_FILE last, and instead of the user's."""
    named = environment.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = environment.get("HOME") or os.path.expanduser("~")
    shared = (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep)
    files = [os.path.join(folder, "pip", "pip.conf") for folder in reversed(shared)] + ["/etc/pip.conf"]
    if not (named and os.path.exists(named)):
        own = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
        files += [os.path.join(home, ".pip", "pip.conf"), os.path.join(own, "pip", "pip.conf")]
    files.append(os.path.join(sys.prefix, "pip.conf"))
    return [*files, named] if named else files


def _read(path: str) -> dict[str, str]:
    """The relevant settings of one file: `install` overrides `global`. Empty if it is missing or broken."""
    if not os.path.isfile(path):
        return {}

    parser = configparser.RawConfigParser()
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError):
        return {}
    found: dict[str, str] = {}
    for section in ("global", "install"):
        if parser.has_section(section):
            found |= {_key(name): value for name, value in parser.items(section)}
    return found


def _key(name: str) -> str:
    return name.lower().replace("_", "-").removeprefix("--")


def _absolute(place: str) -> str:
    """Makes a path independent of where the installer runs."""
    return place if "://" in place else os.path.abspath(os.path.expanduser(place))
