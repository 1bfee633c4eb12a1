"""The scripts of folders, patterns and search folders, and the models of zoos."""

from __future__ import annotations

import glob
import os
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from benchmodels.packages import MAIN
from benchwright.core.errors import InvalidInput, TooManyScripts, did_you_mean
from benchwright.core.stream_dialect import files_beside_scripts
from benchwright.kinds.models.corpora import corpus_folder
from benchwright.kinds.models.script_notes import matches_label, parse_labels
from benchwright.kinds.models.zoo.interpreters import ZooPythons
from benchwright.kinds.models.zoo.targets import CORPORA, chosen, each_once, is_zoo_target, models_meant
from benchwright.kinds.system_folders import refuse_system_folder
from benchwright.options.table import Options

_MEMBER = "::"
_NO_SCRIPTS = ("benchfile.py", "conftest.py", "setup.py")  # parts of something else
_PASSED_OVER = ("__pycache__", "node_modules", "site-packages")


def with_scripts(options: Options) -> tuple[Options, frozenset[str]]:
    """The options with each folder replaced by its scripts, each pattern of a zoo by its models, and these: a broken one
    does not stop the others."""
    targets, many = [], set()
    for target in options.targets:
        found = _zoo_models(target, options) or _scripts_of(target, options)
        targets += found
        many |= set(found) - {target}
    everything = _all_scripts(options)
    many |= set(everything)
    targets += everything
    targets, same = _each_model_once(targets, options)
    if options.shuffle or options.shard is not None:
        mine = _share_of(dict.fromkeys(target for target in targets if target in many), options)
        targets = [*(target for target in targets if target not in many), *mine]
    return replace(options, targets=tuple(targets), same_models=same), frozenset(many)


def shared_names(options: Options) -> frozenset[str]:
    """Names of files that several scripts of the request's folders have, selected or not."""
    folders = [*map(corpus_folder, options.targets), *map(corpus_folder, options.search_dirs)]
    folders = [folder for folder in folders if os.path.isdir(folder)] or ["."]
    scripts = dict.fromkeys(os.path.abspath(script) for folder in folders for script in scripts_in(folder))
    count = Counter(map(os.path.basename, scripts))
    return frozenset(name for name, times in count.items() if times > 1)


def _share_of(scripts: Iterable[str], options: Options) -> list[str]:
    """Scripts of this shard, in the order to run them; the same for the same seed, on every machine."""
    found = list(scripts)
    if options.shuffle:
        found.sort(key=os.path.basename)  # what is shuffled is the same wherever the folder lies
        random.Random(options.seed).shuffle(found)  # noqa: S311
    if options.shard is None:
        return found
    number, shards = options.shard
    if not found:
        raise InvalidInput(
            "there are no scripts of folders or models of zoos to share out",
            where="--shard",
            remedy="name a folder, or a pattern such as timm:*",
        )
    if not (mine := found[number - 1 :: shards]):
        noun = "model" if any(map(is_zoo_target, found)) else "script"
        count = f"{len(found)} {noun}{'' if len(found) == 1 else 's'}"
        raise InvalidInput(
            f"nothing is left for {number}/{shards}: there are {count}", where="--shard", remedy="use fewer shards"
        )
    return mine


def _zoo_models(target: str, options: Options) -> list[str]:
    """Each model that a zoo's target or corpus means; empty: it is none."""
    target = zoo_corpus(target) or target
    if not is_zoo_target(target):
        return []
    found = chosen(
        models_meant(target, ZooPythons.meant(options)),
        tasks=options.tasks,
        select=options.select,
        exclude=options.exclude,
        target=target,
    )
    return [model.target for model in found]


def zoo_corpus(name: str) -> str | None:
    """The target for a corpus that is a zoo, if no folder has that name."""
    return None if os.path.exists(corpus_folder(name)) else CORPORA.get(name.rstrip("/").removeprefix("corpora/"))


def _each_model_once(targets: list[str], options: Options) -> tuple[list[str], dict[str, tuple[str, ...]]]:
    """Without models that another zoo has, too; and these, by the target that is kept."""
    zoos = [target for target in targets if is_zoo_target(target)]
    if len(zoos) < 2:
        return targets, {}
    pythons = ZooPythons.meant(options)
    models = [model for target in dict.fromkeys(zoos) for model in models_meant(target, pythons)]
    kept = {model.canonical: model.target for model in each_once(models)}
    same: dict[str, tuple[str, ...]] = {}
    for model in models:
        if model.target != (first := kept[model.canonical]):
            same[first] = (*same.get(first, ()), model.target)
    left_out = {target for others in same.values() for target in others}
    return [target for target in dict.fromkeys(targets) if target not in left_out], same


def _scripts_of(target: str, options: Options) -> list[str]:
    """The target itself; every script of a folder or pattern; a script from a search folder."""
    path, member, names = target.partition(_MEMBER)
    path = corpus_folder(path)
    if os.path.isfile(main := os.path.join(path, MAIN)):
        return [main + member + names]
    if os.path.isdir(path):
        return _handful(_chosen(scripts_in(path), path, options), path, options)
    if os.path.exists(path):
        return [target]
    for folder in options.search_dirs:
        if (inside := _inside(_checked(folder), path)) is not None:
            return [inside + member + names]
    if any(c in path for c in "*?[") and (found := sorted(glob.glob(path, recursive=True))):
        return _handful(_chosen([f for f in found if os.path.isfile(f)], path, options), path, options)
    if options.search_dirs and path.endswith((".py", ".ipynb")):
        places = ", ".join(options.search_dirs)
        there = [os.path.basename(script) for folder in options.search_dirs for script in scripts_in(_checked(folder))]
        remedy = did_you_mean(path, there) or "check the name"
        raise InvalidInput(f"no such file here or in {places}", where=path, remedy=remedy)
    return [target]


def _inside(folder: str, name: str) -> str | None:
    """The script of that name in a folder, or in one below it; InvalidInput if several have it."""
    if os.path.isfile(path := os.path.join(folder, name)):
        return path
    found = [script for script in scripts_in(folder) if os.path.basename(script) == name]
    if len(found) > 1:
        several = ", ".join(os.path.relpath(script, folder) for script in found[:3])
        text = f"{len(found)} scripts in {folder} are called {name}: {several}"
        raise InvalidInput(text, where="--search-dir", remedy=f"name one, such as {os.path.relpath(found[0], folder)}")
    return found[0] if found else None


def _all_scripts(options: Options) -> list[str]:
    """All scripts of the search folders, if requested."""
    if not options.all_scripts:
        return []
    many = any(os.path.isdir(t) or zoo_corpus(t) or any(c in t for c in "*?[") for t in options.targets)
    if not options.search_dirs and many:
        return []
    if not options.searched:
        raise InvalidInput("no folder given", where="--all", remedy="name a folder, or give it with --search-dir")
    return [
        s
        for folder in options.searched
        for s in _zoo_models(folder, options) or _chosen(scripts_in(_checked(folder)), folder, options)
    ]


def _checked(folder: str) -> str:
    folder = corpus_folder(folder)
    if not os.path.isdir(folder):
        raise InvalidInput("no such folder", where=f"--search-dir {folder}", remedy="check the name")
    return refuse_system_folder(folder)


def scripts_in(place: str) -> list[str]:
    """The scripts of a folder, recursively, by name; without the files of packages and hidden files."""
    folder, found = Path(place), []
    no_scripts = files_beside_scripts().union(_NO_SCRIPTS)
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder).parts
        hidden = any(part.startswith((".", "__")) or part in _PASSED_OVER for part in inside)
        if not hidden and path.name not in no_scripts and path.is_file():
            found.append(str(path))
    return found


def _handful(scripts: list[str], where: str, options: Options) -> list[str]:
    """TooManyScripts if nobody said that so many programs may be started."""
    if options.all_scripts or options.most_scripts is None or len(scripts) <= options.most_scripts:
        return scripts
    names = ", ".join(os.path.relpath(script, where if os.path.isdir(where) else ".") for script in scripts[:3])
    what = f"holds {len(scripts)} scripts ({names}…), and each would be run"
    raise TooManyScripts(what, where=where, remedy="add --all to run them all, or name some of them")


def _chosen(scripts: Sequence[str], where: str, options: Options) -> list[str]:
    """Scripts with the labels of `--select key=value`; InvalidInput if there are none."""
    wanted = [word.partition("=") for word in options.select if "=" in word]
    chosen = [s for s in scripts if all(_labelled(s, key, value) for key, _, value in wanted)]
    if not chosen:
        why = "no script there has these labels" if scripts else "there is no Python script in it"
        raise InvalidInput(why, where=where, remedy="check the folder, or name a task file or a script in it")
    return chosen


def _labelled(script: str, key: str, value: str) -> bool:
    with open(script, encoding="utf-8", errors="replace") as handle:
        return matches_label(parse_labels(handle.readline()), key, value)
