"""What the command line says about specifications."""

from __future__ import annotations

import msgspec

from benchwright.core.inputs.specification import SpecRevision


class SpecOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`programs`: name → path or command; the main one is called `program`. `treatment` and `control`: of `--info`."""

    programs: dict[str, str] = {}
    framework: str | None = None
    backends: tuple[str, ...] = ()
    treatment: SpecRevision | None = None
    control: SpecRevision | None = None
    string_map: dict[str, str] = {}
    shared_libs: tuple[str, ...] = ()
    root_model_dir: str | None = None
    model_cache: str | None = None
    offline: bool = False
    run_type: str = "benchmark"
    regressed_types: tuple[str, ...] = ()
    android_dir: str | None = None
    labels: dict[str, str] = {}  # of `--info`'s meta
