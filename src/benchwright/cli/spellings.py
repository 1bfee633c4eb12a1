"""A command line with the options of other tools written as they are called here."""

from __future__ import annotations

import click

from benchwright.options.spellings import spelt_here


def in_our_words(name: str, command: click.Command, words: list[str]) -> list[str]:
    """The words after the name of the command. What follows `--`, and the values of options, are left as they are."""
    parameters = [each for each in command.get_params(click.Context(command)) if isinstance(each, click.Option)]
    known = {flag for each in parameters for flag in (*each.opts, *each.secondary_opts)}
    with_value = {flag for each in parameters if not each.is_flag and not _is_optional(each) for flag in each.opts}
    made: list[str] = []
    is_value = False
    for at, word in enumerate(words):
        if word == "--":
            return [*made, *words[at:]]
        flag, equals, value = word.partition("=")
        found = None
        if not is_value and flag.startswith("-") and flag not in known and flag.strip("-"):
            found = spelt_here(name, flag, known)
        if found is None or (equals and not found):  # a flag that is given a value is refused later
            made.append(word)
        elif found:
            made += [*found[:-1], f"{found[-1]}{equals}{value}"]
        is_value = not is_value and not equals and (found[-1] if found else flag) in with_value
    return made


def _is_optional(option: click.Option) -> bool:
    """Whether it may stand without a value, so that an option can follow it."""
    return getattr(getattr(option, "row", None), "form", None) == "optional"
