"""The corpora that come with benchwright: folders of scripts that build and call models, found by their name."""

from __future__ import annotations

import os.path

from benchwright.kinds.shipped_root import shipped_root


def corpora_folder() -> str:
    return os.path.join(shipped_root(), "corpora")


def shipped_corpora() -> dict[str, str]:
    """Name → folder."""
    folder = corpora_folder()
    if not os.path.isdir(folder):
        return {}
    names = sorted(name for name in os.listdir(folder) if not name.startswith((".", "_")))
    return {name: path for name in names if os.path.isdir(path := os.path.join(folder, name))}


def corpus_folder(name: str) -> str:
    """`name`, or the shipped corpus of that name if there is no such folder here."""
    return name if os.path.exists(name) else shipped_corpora().get(name.removeprefix("corpora/").rstrip("/"), name)
