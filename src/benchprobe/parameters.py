"""The standard parameters of model scripts, read from the script's own command line.

    from benchprobe import parse

    batch_size, max_seq_length = parse(["batch_size", "max_seq_length"])

`python bert.py --batch_size 8` gives 8; parameters that are not given have their standard value.
"""

from __future__ import annotations

import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


class Parameter(NamedTuple):
    """`convert` makes its value from text."""

    default: Any
    convert: Callable[[str], Any]
    about: str


def _flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in TRUE + FALSE:
        raise ValueError(f"{text!r} is neither true nor false")
    return word in TRUE


PARAMETERS: Dict[str, Parameter] = {
    "batch_size": Parameter(1, int, "items in a batch"),
    "max_seq_length": Parameter(128, int, "length of an input sequence"),
    "max_audio_seq_length": Parameter(25600, int, "length of an input sequence of audio samples"),
    "height": Parameter(224, int, "height of an input image"),
    "num_channels": Parameter(3, int, "channels of an input image"),
    "width": Parameter(224, int, "width of an input image"),
    "k": Parameter(8, int, "graph networks: k"),
    "alpha": Parameter(2.2, float, "graph networks: alpha"),
    "out_channels": Parameter(16, int, "graph networks: channels of the output"),
    "num_layers": Parameter(8, int, "graph networks: layers"),
    "in_channels": Parameter(1433, int, "graph networks: channels of the input"),
    "pretrained": Parameter(False, _flag, "load trained weights"),
    "model_path": Parameter(None, str, "where the model's files are"),
    "kvcache": Parameter(False, _flag, "keep keys and values between calls"),
}

asked: Dict[str, Any] = {}  # what scripts of this process asked for and got, above all a batch size


def parse(names: Union[str, Sequence[str]], argv: Optional[Sequence[str]] = None) -> List[Any]:
    """The values of the standard parameters `names`, in that order, from the command line (or `argv`); ignores others."""
    wanted = [names] if isinstance(names, str) else list(names)
    if unknown := ", ".join(repr(name) for name in wanted if name not in PARAMETERS):
        raise ValueError(f"parse() does not know {unknown}; the standard parameters are {', '.join(PARAMETERS)}")
    import argparse  # only a script that asks for parameters pays for it

    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in dict.fromkeys(wanted):
        default, convert, about = PARAMETERS[name]
        flag: Dict[str, Any] = {"nargs": "?", "const": True} if convert is _flag else {}
        parser.add_argument(f"--{name}", type=_argument(convert), default=default, help=about, **flag)
    given, _ = parser.parse_known_args(list(sys.argv[1:] if argv is None else argv))
    asked.update((name, getattr(given, name)) for name in wanted)
    return [getattr(given, name) for name in wanted]


def _argument(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """The conversion under a name for argparse's message: "invalid number value: 'x'"."""

    def number(text: str) -> Any:
        return convert(text)

    number.__name__ = {int: "whole number", float: "number", str: "text"}.get(convert, "true or false")  # type: ignore[call-overload]
    return number
