"""The architectures that transformers lists, read from its source files: neither it nor torch is imported."""

from __future__ import annotations

import ast
import os
import re
from importlib.util import find_spec
from typing import Dict, Iterator, List, Mapping, NamedTuple, Sequence, Set, Tuple

BASE = "base"
REGISTRIES = ("auto_mappings.py", "configuration_auto.py", "modeling_auto.py")
CLASS = re.compile(r"^class (\w+)\(([^)]*)\):|^    input_modalities = (.*)$", re.MULTILINE)
CHECKPOINT = re.compile(r"checkpoint=\"([\w.-]+)/")
# Heads that stand for an architecture without a base model, the first that it has.
USUAL_HEADS = (
    *(
        "causal-lm",
        "seq-to-seq-causal-lm",
        "speech-seq-2-seq",
        "image-text-to-text",
        "multimodal-lm",
        "object-detection",
    ),
    *("universal-segmentation", "depth-estimation", "backbone", "image-classification"),
)
# A head → the task in one word, if it tells more than the kinds of input do.
TASKS = {
    "object-detection": "detection",
    "zero-shot-object-detection": "detection",
    "image-segmentation": "segmentation",
    "instance-segmentation": "segmentation",
    "universal-segmentation": "segmentation",
    "mask-generation": "segmentation",
    "video-classification": "video",
}
OF_SOUND = ("audio-classification", "ctc", "speech-seq-2-seq")
KINDS = {"image": "vision", "video": "video", "time": "time-series", "audio": "audio", "text": "text"}


class Architecture(NamedTuple):
    """A model type and its classes: the base model and those with a head, by head."""

    model_type: str
    config: str
    classes: Mapping[str, str]
    takes: Tuple[str, ...] = ()  # the kinds of input
    family: str = ""  # the folder of its source
    author: str = ""  # the organisation of its best known checkpoint; empty if unknown

    @property
    def head(self) -> str:
        """The head that is meant if none is named: the base model, if there is one."""
        named = [head for head in (BASE, *USUAL_HEADS) if head in self.classes]
        return named[0] if named else next(iter(self.classes))

    @property
    def task(self) -> str:
        tasks = [TASKS[head] for head in self.classes if head in TASKS]
        if tasks and "text" not in self.takes:
            return tasks[0]
        if "image" not in self.takes and any(head in self.classes for head in OF_SOUND):
            return "audio"
        kinds = {KINDS.get(kind, "other") for kind in self.takes}
        if len(kinds) > 1 and "text" not in kinds and "audio" not in kinds:
            return "vision" if "vision" in kinds else sorted(kinds)[0]
        return kinds.pop() if len(kinds) == 1 else "multimodal"


class ModelSource(NamedTuple):
    """A class as its file has it."""

    family: str
    bases: Tuple[str, ...]
    takes: Tuple[str, ...]


def architectures(root: str = "") -> Dict[str, Architecture]:
    """By model type, in the library's order. `root`: its folder, if not the installed one."""
    folder = root or _installed()
    sources = _sources(folder)
    authors = _authors(folder)
    found: Dict[str, Architecture] = {}
    for model_type, known in classes_by_type(folder).items():
        kinds, family = _takes(known.classes[known.head], sources)
        found[model_type] = known._replace(takes=kinds, family=family, author=authors.get(known.config, ""))
    return found


def classes_by_type(root: str = "") -> Dict[str, Architecture]:
    """The same without what the sources of the models tell."""
    configs, models = _registries(root or _installed())
    found: Dict[str, Architecture] = {}
    for model_type in _types(configs, models):
        classes = {head: names[model_type] for head, names in models.items() if model_type in names}
        found[model_type] = Architecture(model_type, configs[model_type], classes)
    return found


def _installed() -> str:
    spec = find_spec("transformers")
    if spec is None or not spec.submodule_search_locations:
        return ""
    return str(next(iter(spec.submodule_search_locations)))


def _types(configs: Mapping[str, str], models: Mapping[str, Mapping[str, str]]) -> List[str]:
    """Model types with a configuration and a class; one of two that share both is enough."""
    listed: List[str] = []
    seen: Set[Tuple[str, str]] = set()
    for names in models.values():
        for model_type, name in names.items():
            pair = (configs.get(model_type, ""), name)
            if pair[0] and model_type not in listed and pair not in seen:
                listed.append(model_type)
                seen.add(pair)
    return sorted(listed)


def _registries(folder: str) -> Tuple[Dict[str, str], Dict[str, Dict[str, str]]]:
    """Model type → class of its configuration, and head → model type → class."""
    configs: Dict[str, str] = {}
    models: Dict[str, Dict[str, str]] = {}
    for name in REGISTRIES:
        path = os.path.join(folder, "models", "auto", name)
        if not os.path.exists(path):
            continue
        for registry, pairs in _ordered_dicts(_read(path)):
            head = re.fullmatch(r"MODEL_(?:FOR_(\w+?)_)?(?:MAPPING_)?NAMES", registry)
            if registry == "CONFIG_MAPPING_NAMES":
                configs.update(pairs)
            elif registry == "MODEL_MAPPING_NAMES":
                models[BASE] = pairs
            elif head and head.group(1):
                models[head.group(1).lower().replace("_", "-")] = pairs
    return configs, {BASE: models.pop(BASE, {}), **models}


def _ordered_dicts(text: str) -> Iterator[Tuple[str, Dict[str, str]]]:
    """`NAME = OrderedDict([(key, value), …])` of a module; parts that are not written out are left out."""
    for node in ast.parse(text).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or not node.value.args:
            continue
        target, argument = node.targets[0], node.value.args[0]
        if not isinstance(target, ast.Name) or not isinstance(argument, (ast.List, ast.Tuple)):
            continue
        if not target.id.startswith(("CONFIG_MAPPING", "MODEL_")):
            continue
        written = [pair for pair in argument.elts if isinstance(pair, ast.Tuple) and len(pair.elts) == 2]
        yield target.id, dict(_pair(pair) for pair in written)


def _pair(pair: ast.Tuple) -> Tuple[str, str]:
    key, value = ast.literal_eval(pair)
    return str(key), str(value if isinstance(value, str) else value[0])


def _sources(folder: str) -> Dict[str, ModelSource]:
    """The classes in the files of all models."""
    found: Dict[str, ModelSource] = {}
    for family, path in _model_files(folder, "modeling_"):
        name = ""
        for match in CLASS.finditer(_read(path)):
            if match.group(1):
                name = match.group(1)
                bases = tuple(base.strip() for base in match.group(2).split(",") if base.strip())
                found[name] = ModelSource(family, bases, ())
            elif name:
                kinds = tuple(re.findall(r"\"(\w+)\"", match.group(3).partition("#")[0]))
                found[name] = found[name]._replace(takes=kinds)
    return found


def _authors(folder: str) -> Dict[str, str]:
    """Class of a configuration → the organisation whose checkpoint its documentation names."""
    found = {}
    for _, path in _model_files(folder, "configuration_"):
        author = ""
        for line in _read(path).splitlines():
            checkpoint = CHECKPOINT.search(line)
            if checkpoint:
                author = checkpoint.group(1)
            elif line.startswith("class ") and author:
                found[line[len("class ") :].partition("(")[0]] = author
                author = ""
    return found


def _model_files(folder: str, start: str) -> Iterator[Tuple[str, str]]:
    """Family and path of each model's files that begin so."""
    models = os.path.join(folder, "models")
    for family in sorted(os.listdir(models)):
        inside = os.path.join(models, family)
        if family != "auto" and os.path.isdir(inside):
            for name in sorted(os.listdir(inside)):
                if name.startswith(start) and name.endswith(".py"):
                    yield family, os.path.join(inside, name)


def _takes(name: str, sources: Mapping[str, ModelSource]) -> Tuple[Tuple[str, ...], str]:
    """The kinds of input of a class, its own or those of the class that it extends, and its family."""
    family = sources[name].family if name in sources else ""
    left: Sequence[str] = (name,)
    for _ in range(8):
        known = [sources[each] for each in left if each in sources]
        taken = [source.takes for source in known if source.takes]
        if taken:
            return taken[0], family
        left = [base for source in known for base in source.bases]
    return ("text",), family


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()
