"""Which folder the artifact cache is in."""

from __future__ import annotations

from pathlib import Path

from benchwright.core.errors import InvalidInput

OPTION = "--model-cache"


def model_cache_folder(given: str | Path, *, forced: bool = False) -> Path:
    """The folder that `--model-cache` names. InvalidInput if it lies in a git checkout, unless `forced`.

    Models there get committed by mistake, make the tree dirty, or vanish with `git clean`.
    """
    folder = Path(given).expanduser().absolute()
    resolved = folder.resolve()
    checkout = next((place for place in (resolved, *resolved.parents) if (place / ".git").exists()), None)
    if checkout is not None and not forced:
        raise InvalidInput(
            f"is inside the git checkout {checkout}, where models could be committed or cleaned away",
            where=f"{OPTION} {given}",
            remedy="choose another folder, or add --force-model-cache",
        )
    if folder.exists() and not folder.is_dir():
        raise InvalidInput("is not a folder", where=f"{OPTION} {given}", remedy="choose another")
    return folder
