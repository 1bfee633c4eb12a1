"""The registry of a seam. Variants are imported, and entry points looked up, only when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from benchwright.core.entry_points import EntryPoint, find_entry_points, load_target, own_entry_points
from benchwright.core.errors import BrokenPlugin, InvalidInput, did_you_mean

T = TypeVar("T")


class Registry(Generic[T]):
    """The variants of one seam, `T` being what an entry point of its group names.

    `noun` names a variant in errors. `built_in`, name → `module:attribute`: instead of benchwright's own entry points.
    """

    def __init__(self, group: str, noun: str, built_in: Mapping[str, str] | None = None) -> None:
        self.group = group
        self.noun = noun
        self._built_in = built_in

    @property
    def built_in(self) -> Mapping[str, str]:
        """Our own variants, name → `module:attribute`; packages cannot replace these."""
        if self._built_in is None:
            self._built_in = {name: entry.target for name, entry in own_entry_points(self.group).items()}
        return self._built_in

    def plugins(self) -> dict[str, EntryPoint]:
        """The entry points of installed packages, by name."""
        return {name: entry for name, entry in find_entry_points(self.group).items() if name not in self.built_in}

    def names(self) -> list[str]:
        """The names of all variants, built-in ones first."""
        return [*self.built_in, *self.plugins()]

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self.plugins()

    def load(self, name: str, *, where: str | None = None) -> T:
        """The variant `name`; InvalidInput suggests the closest name, BrokenPlugin names the broken package."""
        if name in self.built_in:
            found: T = load_target(self.built_in[name])
            return found
        plugins = self.plugins()
        if name in plugins:
            return self.load_plugin(plugins[name])
        known = [*self.built_in, *plugins]
        article = "an" if self.noun[0] in "aeiou" else "a"
        raise InvalidInput(
            f"'{name}' is not {article} {self.noun}",
            where=where,
            remedy=did_you_mean(name, known) or f"use one of {', '.join(known)}",
        )

    def load_plugin(self, entry: EntryPoint) -> T:
        """BrokenPlugin if it cannot be imported, whatever it raises."""
        try:
            found: T = load_target(entry.target)
        except Exception as error:  # a package's own code may raise anything
            raise BrokenPlugin(
                f"the {self.noun} '{entry.name}' of the package {entry.package} {entry.version} cannot be loaded: "
                f"{type(error).__name__}: {error}; repair or uninstall {entry.package}"
            ) from error
        return found

    def load_all(self) -> Iterator[tuple[str, T | BrokenPlugin]]:
        """Every variant, built-in ones first; for a broken one, its error."""
        for name, target in self.built_in.items():
            yield name, load_target(target)
        for name, entry in self.plugins().items():
            try:
                yield name, self.load_plugin(entry)
            except BrokenPlugin as error:
                yield name, error
