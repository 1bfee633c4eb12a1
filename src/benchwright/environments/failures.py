"""The cause of a failed install, from the installer's output: which package, in one sentence."""

from __future__ import annotations

import re

import msgspec

from benchwright.environments.requirement_files import normalised

_NAME = r"(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)"
_MOST = 400  # of a sentence: uv explains conflicts at length, and all of it is in the log


class InstallFailure(msgspec.Struct, frozen=True):
    """`package` None: no single one caused it."""

    what: str
    package: str | None = None


# The first that matches is the reason; later lines are often only consequences. Then, why uv finds no solution.
_PATTERNS = (
    (rf"Failed to (?P<verb>build|download|prepare|read|extract)[^`\n]*`{_NAME}", "{name} could not be {done}"),
    (rf"Failed to fetch:\s*`?(?P<url>\S*?/{_NAME}/?)`?$", "{url} cannot be reached"),
    (r"(?:Couldn't parse requirement|Error parsing included file) in (?P<rest>[^\n]*)", "{match}"),
    (rf"No matching distribution found for {_NAME}\S*", "{match}"),
    (rf"Failed (?:building wheel for|to build) {_NAME}", "{name} could not be built"),
    (rf"Cannot install {_NAME}(?P<rest>[^\n]*)", "{match}"),
    (r"Invalid requirement: (?P<rest>[^\n]*)", "{match}"),
    (r"Could not open requirements file: (?P<rest>[^\n]*)", "{match}"),
)
_REASONS = (
    (rf"[Bb]ecause {_NAME} was not found in (?P<place>[\w ]+?)(?: and|,)", "{name} was not found in {place}"),
    (rf"[Bb]ecause there (?:is|are) no versions? of {_NAME}\S*", "no version of {name} fits"),
    (rf"[Bb]ecause only {_NAME}\S*(?: or \S+)* (?:is|are) available(?P<rest>[^\n]*)", "only {after}"),
    (rf"[Bb]ecause only the following versions of {_NAME}", "no version of {name} fits"),
)
_DONE = {"build": "built", "download": "downloaded", "prepare": "prepared", "read": "read", "extract": "unpacked"}
_BLAME = re.compile(rf"depends? on {_NAME}(?=[<>=!~,\s])")


def failure_of(output: str) -> InstallFailure:
    """From everything the installer printed."""
    if re.search(r"No space left on device|os error 28\b|Disk quota exceeded", output):
        return InstallFailure("the disk is full")
    for pattern, shape in _PATTERNS:
        found = re.search(pattern, output, re.MULTILINE)
        if found is not None:
            return _described(found, shape, output)
    unwrapped = re.sub(r"\s*\n[ │]+", " ", output)  # uv breaks long sentences
    for pattern, shape in _REASONS:
        found = re.search(pattern, unwrapped)
        if found is not None:
            return _described(found, shape, unwrapped)
    explained = _explained(output)
    blamed = _BLAME.search(explained)
    return InstallFailure(_short(explained) or "the installer printed nothing", blamed and normalised(blamed["name"]))


def _described(found: re.Match[str], shape: str, output: str) -> InstallFailure:
    groups = found.groupdict()
    if "verb" in groups:
        groups["done"] = _DONE[groups["verb"]]
    if "{after}" in shape:
        groups["after"] = found[0].partition("only ")[2].partition(", we can conclude")[0]
    text = shape.format(match=found[0][:1].lower() + found[0][1:], **groups)
    cause = _last_cause(output[found.end() :])
    name = groups.get("name")
    if cause and ("done" in groups or "url" in groups or name is None):
        text += f": {cause}"
    return InstallFailure(_short(text), None if name is None else normalised(name))


def _last_cause(text: str) -> str | None:
    """The innermost of uv's causes, or the last line of the traceback it quotes."""
    causes = re.findall(r"^\s*(?:cause|Caused by): (.+)$", text, re.MULTILINE)
    raised = re.findall(r"^\s+(\w*(?:Error|Exception): .+)$", text, re.MULTILINE)
    found = raised or causes
    return found[-1].strip() if found else None


def _explained(output: str) -> str:
    """uv's sentences after `cause:`, or the last line that is an error, or the last line."""
    cause = re.search(r"^\s*(?:cause:|╰─▶|Caused by:) (.+?)(?=\n\S|\n\s*(?:cause|hint):|\Z)", output, re.M | re.S)
    if cause is not None:
        return re.sub(r"\s*\n\s*│?\s*", " ", cause[1]).strip().removeprefix("Because ")
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("$ ")]
    errors = [line for line in lines if line.lower().startswith("error")]
    return re.sub(r"^(?i:error):\s*", "", (errors or lines or [""])[-1])


def _short(text: str) -> str:
    text = text.strip().rstrip(".")
    return text if len(text) <= _MOST else text[:_MOST].rsplit(" ", 1)[0] + " …"
