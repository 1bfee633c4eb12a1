"""`find`: the models of a script as a tree, or as JSON."""

from __future__ import annotations

import textwrap

import msgspec

from benchwright.core.model import TRAINING, FoundModel, ScriptDiscovery
from benchwright.core.quantities import format_prefixed
from benchwright.kinds.models.benchmarks import place_of, why_none
from benchwright.kinds.models.report.table import SHOWN_DIGITS, count_words
from benchwright.report.text.numbers import counted
from benchwright.report.text.one_line import clip, one_line, packed

FORMAT = "benchwright-found"
VERSION = 1
_STEP = 2  # indentation of a submodule
_DEEPEST = 12  # deeper ones are not indented further


def render_found(discovery: ScriptDiscovery, width: int = 80, point: str = "") -> str:
    """Text that ends with a newline. `point`: of a sweep, as in the name of a benchmark."""
    lines = [clip(f" {_script_words(discovery, point)}", width)]
    roots, parts = _tree(discovery.models)
    for model in roots:
        lines += _branch(model, parts, 0, width, set())
    lines += _closing(discovery, width)
    return "\n".join(lines) + "\n"


def found_json(discovery: ScriptDiscovery) -> dict[str, object]:
    """One script in the output of `find --json`; documented in docs/reference/models.md."""
    body: dict[str, object] = msgspec.to_builtins(discovery)
    body["models"] = [{**msgspec.to_builtins(model), "measurable": model.measurable} for model in discovery.models]
    return {"format": FORMAT, "version": VERSION, **body}


def _script_words(discovery: ScriptDiscovery, point: str) -> str:
    labels = " ".join(f"{key}={value}" for key, value in discovery.labels.items())
    note = next((line.strip() for line in (discovery.source_note or "").splitlines() if line.strip()), "")
    return "  ".join(filter(None, (discovery.script + point, labels, note)))


def _tree(models: tuple[FoundModel, ...]) -> tuple[list[FoundModel], dict[str, list[FoundModel]]]:
    """Top-level models, and the parts of each identity; a part of an unknown model is top-level."""
    known = {model.identity for model in models}
    roots: list[FoundModel] = []
    parts: dict[str, list[FoundModel]] = {}
    for model in models:
        if model.parent is not None and model.parent in known and model.parent != model.identity:
            parts.setdefault(model.parent, []).append(model)
        else:
            roots.append(model)
    reached: set[str] = set()
    for root in roots:
        _reach(root.identity, parts, reached)
    return roots + [m for m in models if m.identity not in reached], parts


def _reach(identity: str, parts: dict[str, list[FoundModel]], reached: set[str]) -> None:
    waiting = [identity]
    while waiting:
        one = waiting.pop()
        if one not in reached:
            reached.add(one)
            waiting += [part.identity for part in parts.get(one, ())]


def _branch(
    model: FoundModel, parts: dict[str, list[FoundModel]], depth: int, width: int, above: set[str]
) -> list[str]:
    indent = " " * (3 + _STEP * min(depth, _DEEPEST))
    lines = packed(_heading(model, depth), width, indent, indent + "    ")
    for text in _about(model):
        lines += _wrapped(text, indent + "  ", width)
    if model.identity in above:  # a model that contains itself
        return lines
    for part in parts.get(model.identity, ()):
        lines += _branch(part, parts, depth + 1, width, above | {model.identity})
    return lines


def _heading(model: FoundModel, depth: int) -> list[str]:
    wrapped = f" in {', '.join(model.wrappers)}" if model.wrappers else ""
    where = f"({place})" if (place := place_of(model)) else ""
    dtype = f" {model.dtype}" if model.dtype not in (None, "float32") else ""
    parts = (
        model.path if depth else "",
        model.class_ + wrapped,
        f"{count_words(model.parameters)} parameters{dtype}" if model.parameters else "no parameters",
        format_prefixed(model.flops, "FLOP") if model.flops is not None else "",
        where,
        model.identity[:SHOWN_DIGITS],
    )
    return [part for part in parts if part]


def _about(model: FoundModel) -> list[str]:
    inputs = ", ".join(map(str, model.inputs))
    calls = _calls(model)
    items = f"{counted(model.items, 'item')} a call ({model.items_from})" if model.items else ""
    texts = [inputs, items, calls]
    if model.reason is not None or not model.measurable:
        texts.append(f"not measured: {model.why_not_measured}")
    if model.flops is None and model.flops_note:
        texts.append(f"arithmetic not counted: {model.flops_note}")
    elif model.flops_note:
        texts.append(f"arithmetic: {model.flops_note}")
    return [text for text in texts if text]


def _calls(model: FoundModel) -> str:
    """`called 3 times, 2 of them in training; with 5 other shapes too`; nothing if it was called once, as usual."""
    words = []
    if model.calls > 1 and model.mode != TRAINING:  # the reason says how often it was trained
        words.append(f"called {model.calls:,} times")
    if model.training_calls and model.mode != TRAINING:
        words.append(f"{model.training_calls:,} calls in training")
    if model.other_shapes:
        words.append(f"{model.other_shapes:,} other shapes too")
    if not model.main_process:
        words.append("in a process that the script started")
    return ", ".join(words)


def _closing(discovery: ScriptDiscovery, width: int) -> list[str]:
    lines: list[str] = []
    if discovery.trouble:
        kept = "; models called before that are listed" if discovery.models else ""
        lines += _wrapped(f"⚠ the script failed: {discovery.trouble}{kept}", "   ", width)
        lines += [f"     | {line}"[:width] for line in discovery.log]
    elif not discovery.ended:
        lines += _wrapped("⚠ the script ended abruptly: models may be missing", "   ", width)
    if discovery.searched is not None:
        when = discovery.searched.replace("T", " ")[:16]
        lines += _wrapped(
            f"as found on {when}: nothing has changed since; --rebuild always searches again", "   ", width
        )
    for note in discovery.notes:
        lines += _wrapped(f"⚠ {note}", "   ", width)
    can = sum(model.measurable for model in discovery.models)
    count = len(discovery.models)
    if not count:
        what = "no model was found in it; if it trains, try 'bw run' with --as training, else --as command"
        if discovery.frameworks:
            what = f"no model was found: {why_none(discovery)}"
        return [*lines, *_wrapped(what, " ", width)]
    words = f"{count:,} model{'s' if count != 1 else ''}" + ("" if can == count else f", {can:,} to be measured")
    return [*lines, clip(f" {words}", width)]


def _wrapped(text: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(
        one_line(text),
        max(width, len(indent) + 24),
        initial_indent=indent,
        subsequent_indent=indent + "    ",
        break_on_hyphens=False,
    )
