"""Lists and removes files sent to a machine."""

from __future__ import annotations

import msgspec

from benchwright.executors.transfer.shell import ANSWER, Shell, ask

_LIMIT_S = 600.0
# $1: the folder; empty: the one in the home. Only what we put there is looked at and removed.
_FIND = """\
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/benchwright/node}
case $folder in "~/"*) folder=$HOME/${folder#"~/"};; /*) ;; *) folder=$HOME/$folder;; esac
"""
_SHOW = f"""{_FIND}
echo '{ANSWER}'
echo "$folder"
cd "$folder" 2>/dev/null || exit 0
[ -d objects ] && [ -d trees ] || exit 0
du -sk . 2>/dev/null | sed 's/[^0-9].*//'
for stamp in trees/*; do [ -f "$stamp" ] && echo tree; done
:"""
_REMOVE = f"""{_FIND}
echo '{ANSWER}'
cd "$folder" 2>/dev/null || exit 0
[ -d objects ] && [ -d trees ] || exit 0
rm -rf objects trees placed runs incoming.* building.* || exit 1
cd / && rmdir "$folder" 2>/dev/null
:"""


class SentFiles(msgspec.Struct, frozen=True):
    """`trees`: files and folders that programs there use."""

    folder: str
    size: int
    trees: int


def sent_files(shell: Shell, folder: str | None = None) -> SentFiles:
    """The trees there; CannotMeasure if the machine cannot be reached."""
    place, *rest = ask(shell, _SHOW, folder or "", limit_s=_LIMIT_S, what="it was asked what it has").lines
    size = int(rest[0]) * 1024 if rest and rest[0].isdigit() else 0
    return SentFiles(folder=place, size=size, trees=rest.count("tree"))


def remove_sent_files(shell: Shell, folder: str | None = None) -> None:
    """Remove all of it, and nothing else."""
    ask(shell, _REMOVE, folder or "", limit_s=_LIMIT_S, what="what was sent there was removed")
