"""Which YAML of the suite's entry replaces what a foreign benchfile.py does by overriding methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from benchwright.kinds.suite.benchfile.syntax import Overridden

IGNORED = "x-benchfile"  # an entry that says `attributes` here wants nothing but the attributes of its benchfile
ATTRIBUTES_ONLY = "attributes"

_RUN = ("build_run_plan", "run", "voir", "execute", "python")
_PREPARE = ("build_prepare_plan", "prepare", "prepare_script")
_INSTALL = (
    "install",
    "checked_install",
    "build_install_plan",
    "pip_install",
    "conda_install",
    "base_requirements",
    "requirements_map",
    "requirements_files",
)
_ENVIRONMENT = ("make_env", "full_env")
_ARGUMENTS = ("argv",)
_OTHERS = ("main_script", "working_directory", "__init__", "copy")
# Pinning does not change what is run, and `benchwright pin` does it its own way.
NOTED_ONLY = ("pin", "build_pin_plan", "exec_pip_compile")
HOOKS = frozenset((*_RUN, *_PREPARE, *_INSTALL, *_ENVIRONMENT, *_ARGUMENTS, *_OTHERS, *NOTED_ONLY))


def is_replaced(one: Overridden, entry: Mapping[str, object]) -> bool:
    """Whether the entry says itself what the method would have done.

    Keys that milabench has too count only where they can be seen to say the same.
    """
    if entry.get(IGNORED) == ATTRIBUTES_ONLY:
        return True
    plan = entry.get("plan")
    launched = "launcher" in entry or (isinstance(plan, Mapping) and "launcher" in plan)
    if one.name in _RUN:
        return launched or "main" in entry
    if one.name in _PREPARE:
        return "prepare" in entry
    if one.name == "main_script":
        return "main" in entry
    if one.name in _ENVIRONMENT:
        env = entry.get("env")
        return bool(one.sets) and isinstance(env, Mapping) and set(one.sets) <= set(env)
    return False


def replacement(one: Overridden) -> str:
    """What to write instead, in words, with the YAML."""
    for names, write in _WRITERS:
        if one.name in names:
            return write(one)
    return "do the same in the script itself"


def _run(one: Overridden) -> str:
    said = " ".join(one.words)
    if "torchrun" in said or "torch.distributed" in said:
        return "write `launcher: torchrun` in the suite's entry"
    if "accelerate" in said:
        return "write `launcher: accelerate` in the suite's entry"
    if "clientserver" in said or "client_argv" in said or "server_argv" in said:
        return "write `server: {argv: …}` and `client: {argv: …}` in the suite's entry"
    if "docker" in said:
        return "write `docker: {executable: …, image: …}` in the system file"
    return "write `main: SCRIPT` and `argv: […]` in the suite's entry"


def _prepare(one: Overridden) -> str:
    return "write `prepare: SCRIPT` in the suite's entry, a script of the folder that does the same"


def _install(one: Overridden) -> str:
    return "write what it installs into requirements.in, and pip's options as `pip: {args: […]}` in the suite's entry"


def _environment(one: Overridden) -> str:
    if not one.sets:
        return "write `env: {NAME: value}` in the suite's entry"
    pairs = [f"{name}: {'…' if value is None else _quoted(value)}" for name, value in one.sets.items()]
    return f"write `env: {{{', '.join(pairs)}}}` in the suite's entry"


def _arguments(one: Overridden) -> str:
    return f"write the words as `argv: […]` in the suite's entry, and `{IGNORED}: {ATTRIBUTES_ONLY}` beside them"


def _main(one: Overridden) -> str:
    return "write `main: SCRIPT` in the suite's entry"


def _folder(one: Overridden) -> str:
    return "the script is run in its folder: let it change to another one itself"


_WRITERS: Sequence[tuple[tuple[str, ...], Callable[[Overridden], str]]] = (
    (_RUN, _run),
    (_PREPARE, _prepare),
    (_INSTALL, _install),
    (_ENVIRONMENT, _environment),
    (_ARGUMENTS, _arguments),
    (("main_script",), _main),
    (("working_directory",), _folder),
)


def _quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
