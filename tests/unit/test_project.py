"""What holds for the project as a whole: entry points, start-up, versions, links, and no trace of the machine it was made on."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchwright.store.schema import VERSION

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ENTRY_POINTS = [
    pytest.param(value, id=f"{group}:{name}")
    for group, entries in [("scripts", PROJECT["scripts"]), *PROJECT.get("entry-points", {}).items()]
    for name, value in entries.items()
]
SEAMS = {
    f"benchwright.{seam}"
    for seam in (
        "kinds",
        "extractors",
        "samplers",
        "executors",
        "reporters",
        "importers",
        "stores",
        "hints",
        "deliveries",
        "exporters",
        "spec_dialects",
        "spellings",
        "revision_control",
        "scores",
        "suite_dialects",
        "stream_dialects",
        "variables",
        "routes",
    )
}
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "performance" / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.compat
@pytest.mark.parametrize("value", ENTRY_POINTS)
def test_entry_point_loads(value: str) -> None:
    module, _, attribute = value.partition(":")
    assert callable(getattr(importlib.import_module(module), attribute))


def test_every_seam_has_at_least_one_variant() -> None:
    assert {group for group, entries in PROJECT["entry-points"].items() if entries} == SEAMS


def pins(name: str) -> dict[str, str]:
    """Normalised name → version."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", package).lower(): version for package, version in found}


def test_what_ci_installs_has_hashes_and_the_versions_of_the_constraints() -> None:
    text = (ROOT / "requirements.ci.txt").read_text(encoding="utf-8")
    locked = pins("requirements.ci.txt")
    entries = re.split(r"\n(?=[A-Za-z])", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    assert len(entries) >= len(locked) > 100
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
    constraints = pins("constraints.txt")
    assert {name: v for name, v in locked.items() if constraints.get(name, v) != v} == {}
    extras = PROJECT["optional-dependencies"]
    needed = [*PROJECT["dependencies"], *(line for extra in ("dev", "torch", "docs") for line in extras[extra])]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=; ]", line)[0]).lower() for line in needed} - {"benchwright"}
    assert names - locked.keys() == set()


# Every file that can reach a network, and the words of SECURITY.md for it.
NETWORK = {
    "benchload/client.py": "the endpoint that a run names",
    "benchload/server_state.py": "the endpoint that a run names",
    "benchmodels/zoo/huggingface.py": "Hugging Face's hub",
    "benchwright/agent/served_client.py": "a server that a benchmark starts",
    "benchwright/artifacts/sources/cloud.py": "files that a specification names",
    "benchwright/artifacts/sources/web.py": "files that a specification names",
    "benchwright/artifacts/outbox.py": "webhooks",
    "benchwright/doctor/all_reduce_pair.py": "all-reduce between nodes",
    "benchwright/environments/installers.py": "pip's or uv's indexes",
    "benchwright/executors/android/adb.py": "adb",
    "benchwright/executors/ssh_connection.py": "ssh to nodes",
    "benchwright/compat/milabench/benchfile/compat_modules/milabench/fs.py": "install steps of a benchfile",
    "benchwright/kinds/suite/setup/install.py": "git clone of definitions",
    "benchwright/compat/faipep/hg_repository.py": "hg pull",
    "benchwright/regress/repository.py": "git fetch",
    "benchwright/store/connection.py": "PostgreSQL",
    "benchwright/store/http_store.py": "a server of benchwright",
}
REACHES_OUT = re.compile(
    r"\burllib\.request\b|\bhttp\.client\b|\bsmtplib\b|create_connection|import psycopg|\n *import requests|import httpx|import aiohttp"
    r"|\bs3fs\b|snapshot_download|list_models|load_dataset|\[\*?_?GIT, \"clone\"|\"clone\"|\"fetch\", |\"pull\"|\"ssh\"\)|which\(\"ssh|which\(\"adb"
    r"|\"pip\", \"install\"|socket\.getaddrinfo|ftplib|telnetlib|xmlrpc|asyncio\.open_connection"
)


def test_every_use_of_the_network_is_listed() -> None:
    found = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*.py")
        if REACHES_OUT.search(path.read_text(encoding="utf-8"))
    }
    assert found <= NETWORK.keys()
    told = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert [words for words in NETWORK.values() if words not in told] == []


def test_the_pages_tell_the_version_of_the_store() -> None:
    said = {
        (path.name, found)
        for path in PAGES
        if "decisions" not in path.parts and path.name != "CHANGELOG.md"
        for found in re.findall(
            r"(?:store\.db: (?:intact, )?|[Ss]chema )(?:has a )?version(?:, now)? `?(\d{4})",
            path.read_text(encoding="utf-8"),
        )
    }
    assert said == {("files.md", VERSION), ("store.md", VERSION)}


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from benchwright.cli.main import main\n"
        "sys.argv = ['benchwright', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert {"click", "benchwright"} <= loaded
    assert not loaded & {"torch", "numpy", "rich", "pandas", "sqlalchemy", "psutil", "pynvml", "pydantic", "asyncio"}


def test_a_plain_command_imports_nothing_of_other_kinds(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from benchwright.cli.main import main\n"
        f"try:\n    main(['run', '--no-store', '--base', {str(tmp_path)!r}, '--', 'true'])\n"
        "except SystemExit as ended:\n    assert not ended.code, ended.code\n"
        "print('LOADED', *sys.modules)\n"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.rpartition("LOADED")[2].split())
    assert "benchwright.kinds.command.read" in loaded
    others = ("benchmodels", "benchwright.kinds.models.", "benchwright.kinds.suite.", "benchwright.store.")
    assert [name for name in loaded if name.startswith(others)] == []
    assert not loaded & {"sqlalchemy", "dataclasses", "difflib", "yaml", "jinja2"}


def test_probe_imports_only_the_standard_library_and_itself() -> None:
    code = "import sys, benchprobe\nprint(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = run_python("-I", "-S", "-c", f"import sys\nsys.path.insert(0, {str(ROOT / 'src')!r})\n{code}")
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) - sys.stdlib_module_names <= {"benchprobe", "__main__"}


OF_MEASURED_PROGRAMS = ("src/benchprobe", "src/benchmodels", "plugins/runtimes/src")


@pytest.mark.parametrize(
    "path",
    sorted(path for name in OF_MEASURED_PROGRAMS for path in (ROOT / name).rglob("*.py")),
    ids=lambda path: path.name,
)
def test_probe_is_written_in_the_syntax_of_python_3_9(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    annotated = any(isinstance(node, ast.AnnAssign | ast.FunctionDef) for node in ast.walk(tree))
    futures = {name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}
    # Without it, an annotation such as `int | None` is evaluated, and Python 3.9 cannot.
    assert not annotated or "annotations" in futures


def test_every_command_in_the_table_is_there_and_explains_itself() -> None:
    import click

    from benchwright.cli.main import COMMANDS, cli

    for name, (_, about) in COMMANDS.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None, name
        assert command.help, name
        assert about.endswith("."), name


def test_version_is_the_same_everywhere() -> None:
    from benchwright.version import __version__

    assert importlib.metadata.version("benchwright") == __version__
    done = run_python("-c", "from benchwright.cli.main import main; main(['--version'])")
    assert done.returncode == 0, done.stderr
    assert __version__ in done.stdout
    import benchprobe

    assert benchprobe.__version__ == __version__


def test_learning_the_version_does_not_start_the_probe() -> None:
    code = "import sys, benchwright; assert not any(name.startswith('benchprobe') for name in sys.modules)"
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    local = [link for link in links if not link.startswith(("http://", "https://"))]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.compat
def test_reference_of_the_command_line_is_current() -> None:
    done = run_python("docs/generate_cli.py", "--check", "docs/reference/cli.md")
    assert done.returncode == 0, done.stderr


def test_keywords_of_the_python_api_are_current() -> None:
    done = run_python("docs/generate_keywords.py", "--check")
    assert done.returncode == 0, done.stderr


def test_no_file_names_this_machine_or_a_package_registry() -> None:
    # Written in pieces, or this file would be the first one found.
    traces = [
        *("/" + name + "/" for name in ("work", "ro" + "ot")),
        *("/opt/" + name for name in ("wheels", "pypi")),
        *(name + ".org" for name in ("pypi", "pythonhosted", "download.pytorch", "conda.anaconda")),
        *("--" + name for name in ("extra-index" + "-url", "trusted-" + "host")),
        str(ROOT) + "/",
    ]
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    found = []
    for name in sorted(filter(None, listed.stdout.decode().split("\0"))):
        path = ROOT / name
        if not path.is_file():
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{name}: {trace}" for trace in traces if trace in text]
    assert found == []


def test_every_plugin_of_the_tests_is_the_example_of_its_page() -> None:
    """docs/extend includes their code; the line that adds each is written there."""
    plugins = ROOT / "tests" / "plugins"
    entry_points = tomllib.loads((plugins / "pyproject.toml").read_text())["project"]["entry-points"]
    for added in entry_points.values():
        for name, target in added.items():
            file = target.partition(":")[0].rpartition(".")[2] + ".py"
            assert (plugins / "src" / "benchwright_test_plugins" / file).is_file()
            page = ROOT / "docs" / "extend" / file.replace(".py", ".md")
            assert f"benchwright_test_plugins/{file}" in page.read_text(), page
            assert f'{name} = "{target}"' in page.read_text(), page
