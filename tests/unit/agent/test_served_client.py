"""Clients measured against real little servers."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import carrying, wait_for

from benchwright.agent.served_client import Failed, parse, parse_ready

SOURCE = Path(__file__).parents[3] / "src"
# Waits, says in a file what it sees of the world, then answers GET / until it is told to end.
SERVER = """
import http.server, json, os, signal, sys, time
port, folder, delay = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
def leave(*_):
    open(folder + "/asked", "w").close()
    os._exit(0)
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
else:
    signal.signal(signal.SIGTERM, leave)
if "child" in sys.argv and os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(300)
with open(folder + "/server.json", "w") as file:
    json.dump(dict(os.environ), file)
time.sleep(delay)
print("the server is up", flush=True)
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        code = 200 if self.path == "/ready" or "late" not in sys.argv else 503
        self.send_response(code)
        self.end_headers()
        if self.path == "/die":
            os._exit(9)
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", port), Page).serve_forever()
"""
ASK = "import sys, urllib.request as u; print(u.urlopen(sys.argv[1], timeout=9).status)"


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


class Bench:
    """Everything it starts carries a mark, so that what is left over can be found."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder, self.port = folder, port
        self.started: list[subprocess.Popen[str]] = []
        self.mark = f"SERVING_TEST={folder}"
        (folder / "server.py").write_text(SERVER)
        plain = {name: value for name, value in os.environ.items() if name != "BENCHPROBE_CONFIG"}
        self.env = {**plain, "PYTHONPATH": str(SOURCE), "SERVING_TEST": str(folder)}

    def server(self, *more: str, delay: float = 0.1) -> list[str]:
        return [sys.executable, str(self.folder / "server.py"), str(self.port), str(self.folder), str(delay), *more]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def start(self, server: list[str], client: list[str], *options: str, ready: str = "") -> subprocess.Popen[str]:
        options = ("--ready", ready or f"tcp:127.0.0.1:{self.port}", *options)
        words = [*options, "--server", str(len(server)), *server, "--", *client]
        argv = [sys.executable, "-m", "benchwright.agent.served_client", *words]
        process = subprocess.Popen(argv, env=self.env, cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        self.started.append(process)
        return process

    def end(self) -> None:
        """A test that failed leaves nothing behind that would trouble the next one."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()

    def run(self, *args: object, **named: object) -> tuple[int, str, str]:
        process = self.start(*args, **named)  # type: ignore[arg-type]
        output, errors = process.communicate(timeout=600)
        self.nothing_is_left()
        return process.returncode, output, errors

    def nothing_is_left(self) -> None:
        assert carrying(self.mark) == []


@pytest.fixture
def bench(tmp_path: Path, port: int) -> Iterator[Bench]:
    bench = Bench(tmp_path, port)
    yield bench
    bench.end()


@pytest.mark.parametrize("kind", ["tcp", "http"])
def test_the_client_runs_once_the_server_answers_and_gives_the_exit_code(bench, kind):
    client = [sys.executable, "-c", ASK + "; sys.exit(7)", bench.url]
    code, output, errors = bench.run(bench.server(), client, ready=bench.url if kind == "http" else "")
    assert (code, output) == (7, "the server is up\n200\n"), errors
    assert (bench.folder / "asked").exists()  # it was asked to end, not killed


def test_a_page_that_is_not_fine_yet_is_not_ready(bench):
    code, _, errors = bench.run(bench.server("late"), ["true"], "--timeout", "1.5", ready=bench.url)
    assert code == 124
    assert f"the server did not answer at {bench.url} within 1.5 s" in errors
    assert bench.run(bench.server("late"), ["true"], ready=bench.url + "ready")[0] == 0


def test_only_the_client_sees_where_measurements_go(bench):
    bench.env |= {"BENCHPROBE_CONFIG": json.dumps({"stream": str(bench.folder / "x.data")}), "DATA_FD": "3"}
    client = "import os, json; json.dump(dict(os.environ), open('client.json', 'w'))"
    code, _, errors = bench.run(bench.server(), [sys.executable, "-c", client])
    assert code == 0, errors
    server, client = (json.loads((bench.folder / f"{name}.json").read_text()) for name in ("server", "client"))
    assert {"BENCHPROBE_CONFIG", "DATA_FD"} <= client.keys()
    assert not {"BENCHPROBE_CONFIG", "DATA_FD"} & server.keys()
    assert server["SERVING_TEST"] == client["SERVING_TEST"]


def test_the_client_is_measured_and_nothing_else_is(bench):
    stream = bench.folder / "x.data"
    bench.env["BENCHPROBE_CONFIG"] = json.dumps({"stream": str(stream), "warmup": {"steps": 0}})
    loop = "import benchprobe\nfor _ in benchprobe.iterate('train', range(20)): pass"
    assert bench.run(bench.server(), [sys.executable, "-c", loop])[0] == 0
    events = [json.loads(line) for line in stream.read_text().splitlines()]
    assert [e["event"] for e in events].count("probe") == 1
    assert sum(len(e["step_ns"]) for e in events if e["event"] == "steps") == 20


def test_open_descriptors_reach_the_client(bench):
    read, write = os.pipe()
    words = ["--ready", f"tcp:127.0.0.1:{bench.port}", "--server", "5", *bench.server()]
    client = [sys.executable, "-c", f"import os; os.write({write}, b'data')"]
    argv = [sys.executable, "-m", "benchwright.agent.served_client", *words, "--", *client]
    subprocess.run(argv, env=bench.env, cwd=bench.folder, pass_fds=(write,), check=True, timeout=600)
    os.close(write)
    assert os.read(read, 100) == b"data"
    os.close(read)


def test_a_server_that_dies_first_is_said_with_its_code(bench):
    code, _, errors = bench.run(
        [sys.executable, "-c", "import sys; print('no GPU', file=sys.stderr); sys.exit(5)"], ["true"]
    )
    assert code == 1
    assert "no GPU" in errors
    assert "the server ended with code 5 before it was ready" in errors


def test_a_server_that_dies_while_the_client_runs_ends_the_client(bench):
    client = [sys.executable, "-c", f"import urllib.request as u, time\ntry: u.urlopen('{bench.url}die')\nexcept Exception: pass\ntime.sleep(300)"]  # fmt: skip
    code, _, errors = bench.run(bench.server(), client)
    assert code == 1
    assert "the server ended with code 9 while the client ran; the client was stopped" in errors


def test_a_server_that_ignores_term_is_killed_with_what_it_started(bench):
    code, _, errors = bench.run(bench.server("stubborn", "child"), ["true"], "--grace", "0.3")
    assert (code, errors) == (0, "")


def test_a_child_of_the_server_that_ignores_term_does_not_outlive_it(bench):
    assert bench.run(bench.server("child"), ["true"])[0] == 0


def test_another_server_at_that_port_is_not_taken_for_ours(bench):
    with socket.create_server(("127.0.0.1", bench.port)):
        code, _, errors = bench.run(bench.server(), ["true"])
    assert code == 1
    assert "already answers" in errors
    assert not (bench.folder / "server.json").exists()  # it was not even started


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda n: n.name)
def test_signals_reach_the_client_which_decides(bench, number):
    client = (
        "import signal, sys, time\n"
        f"signal.signal({int(number)}, lambda *_: sys.exit(33))\n"
        # Short sleeps: a signal that comes just before one begins is only handled once it is over.
        "print('ready', flush=True)\n"
        "for _ in range(3000): time.sleep(0.1)"
    )
    process = bench.start(bench.server(), [sys.executable, "-c", client])
    assert process.stdout.readline() == "the server is up\n"
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    process.communicate(timeout=600)
    assert process.returncode == 33
    bench.nothing_is_left()


def test_a_client_ended_by_a_signal_gives_128_and_its_number(bench):
    code, _, _ = bench.run(bench.server(), [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"])
    assert code == 137


def test_a_signal_before_the_client_runs_ends_the_server(bench):
    process = bench.start(bench.server(delay=300), ["true"])
    assert wait_for(lambda: (bench.folder / "server.json").exists())
    process.terminate()
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 128 + signal.SIGTERM
    assert "SIGTERM came before the client was started" in errors
    bench.nothing_is_left()


def test_nothing_outlives_a_kill(bench):
    process = bench.start(bench.server(), ["sleep", "300"])
    assert wait_for(lambda: len(carrying(bench.mark)) == 3)
    process.kill()
    process.communicate(timeout=600)
    assert wait_for(lambda: carrying(bench.mark) == [])


def test_programs_that_do_not_exist(bench):
    code, _, errors = bench.run(["/no/such/server"], ["true"])
    assert (code, "the server /no/such/server could not be started: No such file" in errors) == (127, True)
    code, _, errors = bench.run(bench.server(), ["/no/such/client"])
    assert (code, "the client /no/such/client could not be started: No such file" in errors) == (127, True)


def test_words_of_the_server_may_look_like_anything():
    words = ["--timeout", "3", "--server", "5", "serve", "--", "--server", "2", "-x", "--", "client", "--", "--ready"]
    found = parse(words)
    assert found.server == ["serve", "--", "--server", "2", "-x"]
    assert found.client == ["client", "--", "--ready"]
    assert (found.ready, found.timeout_s) == (None, 3.0)


@pytest.mark.parametrize(
    "words",
    [
        "", "--server", "--server x -- y", "--server 1 a", "--server 1 a --", "--server 2 a -- b", "--server 0 -- b",
        "--server 1 a b -- c", "--port 1 --server 1 a -- b", "--timeout soon --server 1 a -- b", "--ready", "a -- b",
        "--ready tcp:x --server 1 a -- b", "--ready tcp:x:99999 --server 1 a -- b", "--ready ftp://x --server 1 a -- b",
    ],
)  # fmt: skip
def test_a_wrong_command_line_is_refused(words):
    with pytest.raises(Failed) as caught:
        parse(words.split())
    assert caught.value.code == 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("tcp:localhost:80", "tcp:localhost:80"),
        ("tcp://localhost:80", "tcp:localhost:80"),
        ("tcp:[::1]:8000", "tcp:[::1]:8000"),
        ("http://localhost:1/health", "http://localhost:1/health"),
    ],
)
def test_places_to_look_at(text, shown):
    assert str(parse_ready(text)) == shown
