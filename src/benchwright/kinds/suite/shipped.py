"""The suites that come with benchwright, found by their name."""

from __future__ import annotations

import os.path

from benchwright.kinds.shipped_root import shipped_root


def shipped_suites() -> dict[str, str]:
    """Name → path, of every suite that is shipped."""
    folder = os.path.join(shipped_root(), "suites")
    if not os.path.isdir(folder):
        return {}
    names = sorted(n for n in os.listdir(folder) if n.endswith(".yaml") and not n.startswith("_"))
    return {name.removesuffix(".yaml"): os.path.join(folder, name) for name in names}


def shipped_suite(target: str) -> str | None:
    """The path of the suite called `quick`, `quick.yaml` or `suites/quick.yaml`; None if none is shipped under that name."""
    name = target.removeprefix("suites/").removesuffix(".yaml")
    return None if "/" in name else shipped_suites().get(name)


def named_file(target: str) -> str:
    """`target`, or the shipped suite of that name if there is no such file here."""
    if os.path.exists(target):
        return target
    return shipped_suite(target) or target
