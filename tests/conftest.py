"""What holds for all tests."""

from __future__ import annotations

import gc
import importlib.util
import os
import posix
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import coverage
import hypothesis
import pytest
from command_line import CommandLine
from forked_python import ForkedPython
from made_once import MadeOnce
from plugin_package import install_plugins
from postgresql import Server, running_server
from ray_cluster import RayCluster, start_ray_cluster
from without_compat import imports_compat
from xdist.scheduler import LoadGroupScheduling
from xdist.workermanage import WorkerController

# Two busy cores make single examples slow now and then; that is no failure. `make test` uses `repeatable`: the same
# examples every time, so that a change fails by its own faults only; `make unit` uses few, `make test-long` many. Plain
# pytest looks for new ones.
hypothesis.settings.register_profile("shared-machine", deadline=None)
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True, max_examples=30)
hypothesis.settings.register_profile("quick", deadline=None, max_examples=10)
hypothesis.settings.register_profile("many", deadline=None, derandomize=True, max_examples=100)
hypothesis.settings.load_profile("shared-machine")


@pytest.fixture
def bw(tmp_path: Path) -> CommandLine:
    """The command line, run from a folder of its own, with a base folder of its own."""
    cwd = tmp_path / "elsewhere"
    cwd.mkdir()
    return CommandLine(tmp_path / "base", cwd)


@pytest.fixture
def script(bw: CommandLine) -> Callable[[str, str], Path]:
    """Writes a program into the folder the command line is run from."""

    def write(name: str, text: str) -> Path:
        path = bw.cwd / name
        path.write_text(text)
        return path

    return write


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> MadeOnce:
    """Folders that are made once for all workers."""
    root = tmp_path_factory.getbasetemp()
    return MadeOnce((root.parent if "PYTEST_XDIST_WORKER" in os.environ else root) / "made-once")


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[Server]:
    """One for all tests that use it; `xdist_group("postgresql")` brings them to the same process."""
    with running_server() as started:
        yield started


@pytest.fixture(scope="session")
def ray_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    """One cluster for all tests that use it: starting it takes many seconds. `xdist_group("ray")` brings them together.

    Idle it uses 4 % of a core, so it ends with the last of them.
    """
    cluster = start_ray_cluster(tmp_path_factory.mktemp("ray"))
    _ended_with_group["ray"] = cluster.stop
    yield cluster
    cluster.stop()


@pytest.fixture(scope="module")
def ray_cluster(ray_nodes: RayCluster) -> Iterator[RayCluster]:
    """With the variables that drivers need."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ray_nodes.environment.items():
            patch.setenv(name, value)
        yield ray_nodes


FORKING = {"forked_python", "under_discovery"}


@pytest.fixture(scope="session")
def forked_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedPython]:
    """Python with torch imported, once for all tests: those with one of the fixtures `FORKING` come to the same worker."""
    pytest.importorskip("torch")
    python = ForkedPython(tmp_path_factory.mktemp("python") / "site")
    yield python
    python.close()


@pytest.fixture(scope="session")
def plugin_folder(made_once: MadeOnce) -> Path:
    """tests/plugins and plugins/runtimes, installed: for PYTHONPATH."""
    return made_once("plugin-package", lambda folder: install_plugins(folder / "site")) / "site"


@pytest.fixture
def plugins(plugin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """tests/plugins is installed for this process."""
    monkeypatch.syspath_prepend(str(plugin_folder))


# Coverage doubles the time of Python code, and in each of a test's processes it costs more than all they do. Processes are
# measured where they are what is tested; with a tracer the import of torch takes a third longer, so of those that import
# it only the few are measured that reach what no other test does.
HERE = Path(__file__).parent
PROCESSES_MEASURED = tuple(
    str(HERE / path)
    for path in (
        *("unit/agent", "unit/benchprobe", "contracts/test_executor_contract.py", "flows/test_voir_folders.py"),
        *("unit/benchmodels/test_measure.py", "unit/benchmodels/test_running.py", "unit/benchmodels/training"),
    )
)
# `make test-long` measures coverage. It runs these quick tests again for it: most of the source, for a quarter of the time.
FOR_COVERAGE = tuple(str(HERE / folder) for folder in ("unit", "contracts", "compat"))
SHIPPED_BENCHMARKS = str(HERE / "benchmarks")  # programs that are no part of what is measured
_COVERAGE = "COVERAGE_PROCESS_CONFIG"
_coverage_of_processes: dict[str, str] = {}


def _leave_at_once() -> None:
    """In a forked child of a test: coverage's `os._exit` would save all that this worker has measured so far, which takes seconds."""
    os._exit = posix._exit


os.register_at_fork(after_in_child=_leave_at_once)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """All workers import the same modules; what that runs is measured in the first of them.

    Ten thousand tests and torch are a million objects, which stay: the garbage collector need not look at them again and again.
    """
    if _COVERAGE in os.environ:
        _coverage_of_processes[_COVERAGE] = os.environ.pop(_COVERAGE)
    gc.disable()
    try:
        with _unmeasured() if os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0" else nullcontext():
            return (yield)
    finally:
        if (torch := sys.modules.get("torch")) is not None:
            torch.set_num_threads(1)  # each worker would use all cores, and wait for those that others use
        if "sqlalchemy" in sys.modules:
            from shared_statements import share_compiled_statements

            share_compiled_statements()
        _freeze()
        gc.enable()


_ended_with_group: dict[str, Callable[[], None]] = {}


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Only xdist runs the tests of a group one after the other."""
    if _ended_with_group and "PYTEST_XDIST_WORKER" in os.environ:
        marks = nextitem.iter_markers("xdist_group") if nextitem is not None else ()
        for group in _ended_with_group.keys() - {mark.args[0] for mark in marks}:
            _ended_with_group.pop(group)()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Hundreds of examples run what a few have run: tests of Hypothesis take half as long if they are not measured."""
    is_marked = item.get_closest_marker("hypothesis") or item.get_closest_marker("unmeasured")
    try:
        with _unmeasured() if is_marked or str(item.path).startswith(SHIPPED_BENCHMARKS) else nullcontext():
            return (yield)
    finally:
        if _thawed:
            _freeze()


_unfreeze = gc.unfreeze
_thawed: list[bool] = []


def _thaw() -> None:
    """Called where a model was measured in this process. Not asked of the collector: it would count all that is frozen."""
    _unfreeze()
    _thawed.append(True)


gc.unfreeze = _thaw


def _freeze() -> None:
    gc.collect()
    gc.freeze()
    _thawed.clear()


@contextmanager
def _unmeasured() -> Iterator[None]:
    """A worker has two that measure: pytest-cov's, and below it the one that every process starts with."""
    stopped = []
    while (current := coverage.Coverage.current()) is not None:
        current.stop()
        stopped.append(current)
    try:
        yield
    finally:
        for each in reversed(stopped):
            each.start()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    os.environ.pop(_COVERAGE, None)
    if str(item.path).startswith(PROCESSES_MEASURED):
        os.environ.update(_coverage_of_processes)


WITHOUT_COMPAT = importlib.util.find_spec("benchwright.compat") is None  # `make without-compat`


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if WITHOUT_COMPAT and (
        collection_path in (HERE / "compat", HERE / "unit/compat") or imports_compat(collection_path)
    ):
        return True
    return None


@pytest.hookimpl(tryfirst=True)  # before xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item], config: pytest.Config) -> None:
    if WITHOUT_COMPAT:
        left_out = [item for item in items if item.get_closest_marker("compat")]
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)
    for item in items:
        if str(item.path).startswith(FOR_COVERAGE):
            item.add_marker("for_coverage")
        if FORKING & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("forked python"))


def pytest_xdist_auto_num_workers() -> int:
    """As the Makefile says: tests wait a third of their time for processes, servers and schedulers."""
    return (os.cpu_count() or 2) + 2


class Groups(LoadGroupScheduling):
    """Forgets the groups that a worker has done: each of 12,000 tests would look through all of them for what is left to do."""

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        group = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(self.assigned_work[node][group].values()):
            del self.assigned_work[node][group]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups | None:
    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_configure() -> None:
    """Tests of Ctrl-C and of closed terminals need signals that arrive; in the background a shell has them ignored."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
