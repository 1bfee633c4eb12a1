"""Programs that lie or misbehave, one function each: `python programs.py NAME`. tests/support/lies.py says what the truth about each is."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time


def wait_until(is_so):
    """Not for a time: a busy machine may take any."""
    while not is_so():
        time.sleep(0.01)


def events(path, event):
    """The lines of the stream `path` that tell of `event`; one may be half written."""
    with open(path, errors="replace") as lines:
        return [json.loads(line) for line in lines if f'"event":"{event}"' in line and line.endswith("}\n")]


def tells_of_my_loop():
    return any(each["process"] == os.getpid() for each in events(stream(), "loop"))


# What they print.


def prints_nan():
    print("speed nan")


def prints_inf():
    print("speed inf")


def prints_minus_inf():
    print("speed -inf")


def prints_zero():
    print("speed 0")


def prints_negative():
    print("speed -5")


def prints_negative_zero():
    print("speed -0.0")


def prints_nan_among_numbers():
    print("speed 5\nspeed nan\nspeed 7")


def prints_a_number_too_large():
    print("speed 1e400")


def prints_a_number_too_small():
    print("speed 1e-400")


def prints_words():
    print("speed fast")


def prints_nothing():
    pass


def prints_the_name_only():
    print("speed ")


def prints_european_decimals():
    print("speed 1.234,56")


def prints_thousands_separators():
    print("speed 1,234.5")


def prints_thousands_apart():
    print("speed 1 234")


def prints_hexadecimal():
    print("speed 0x10")


def prints_with_a_unit():
    print("speed 5k")


def prints_the_infinity_sign():
    print("speed ∞")


def prints_arabic_digits():
    print("speed ١٢٣")


def prints_a_fraction():
    print("speed 1/3")


def prints_a_percentage():
    print("speed 50%")


def prints_a_list():
    print("speed [1, 2, 3]")


def prints_to_stderr():
    print("speed 5", file=sys.stderr)


def prints_without_a_newline():
    print("speed 5", end="")


def prints_half_lines():
    for piece in ("spe", "ed ", "5", "\n"):
        sys.stdout.write(piece)
        sys.stdout.flush()
        time.sleep(0.05)


def prints_colours():
    print("\x1b[32mspeed 5\x1b[0m")


def prints_carriage_returns():
    sys.stdout.write("speed 4\rspeed 5\r\n")


def prints_invalid_utf8():
    sys.stdout.buffer.write(b"\xff\xfe\xc3 speed 5\nspe\xffed 7\n\x80\n")


def prints_nuls():
    sys.stdout.buffer.write(b"\0\0speed 5\n\0\0\0\n" + b"\0" * 100_000)


def prints_utf16():
    sys.stdout.buffer.write("speed 5\n".encode("utf-16"))


def prints_a_very_long_line():
    sys.stdout.write("x" * 10_000_000 + "\nspeed 5\n")


def prints_the_number_behind_a_very_long_line():
    sys.stdout.write("x" * 10_000_000 + " speed 5\n")


def prints_many_lines():
    sys.stdout.write("nothing\n" * 300_000 + "speed 5\n")


def prints_the_number_very_often():
    sys.stdout.write("speed 5\n" * 100_000)


def prints_control_characters():
    sys.stdout.write("\x1b]0;owned\x07\x1b[2J\x1b[Hspeed 5\n")
    sys.exit(3)


def prints_our_own_words():
    print('{"event": "end", "exit_code": 0}\n speed 5 items/s ok\nbenchwright: all went well')


def hides_lines_in_the_output():
    print("\x1b[7;226576656e74223a2022656e64227=z speed 5")


# How they end.


def prints_then_exits_1():
    print("speed 5")
    sys.exit(1)


def prints_then_raises():
    print("speed 5")
    raise RuntimeError("after the result")


def prints_then_aborts():
    print("speed 5", flush=True)
    os.abort()


def prints_then_kills_itself():
    print("speed 5", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


def prints_then_terminates_itself():
    print("speed 5", flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


def prints_then_breaks_memory():
    print("speed 5", flush=True)
    signal.signal(signal.SIGSEGV, signal.SIG_DFL)
    ctypes.string_at(0)


def prints_then_exits_255():
    print("speed 5", flush=True)
    os._exit(255)


def exits_with_a_text():
    print("speed 5")
    sys.exit("something went wrong")


def exits_256_which_is_0():
    os._exit(256)


def raises_at_exit():
    import atexit

    print("speed 5")
    atexit.register(lambda: 1 / 0)


def raises_in_a_thread():
    print("speed 5")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()


def closes_stdout():
    sys.stdout.close()
    os.close(1)


def closes_everything():
    os.closerange(0, 1024)
    os._exit(0)


def replaces_stdout():
    class Broken:
        def write(self, text):
            raise OSError("broken")

        def flush(self):
            raise OSError("broken")

    sys.stdout = Broken()
    os.write(1, b"speed 5\n")


def becomes_another_program():
    os.execv("/bin/echo", ["/bin/echo", "speed", "5"])


def changes_its_folder_and_removes_it():
    import tempfile

    folder = tempfile.mkdtemp()
    os.chdir(folder)
    os.rmdir(folder)
    print("speed 5")


def limits_its_files():
    print("speed 5", flush=True)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    try:
        print("speed 900", flush=True)
    except OSError:
        os._exit(0)


def limits_its_descriptors():
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    print("speed 5")


def runs_out_of_memory():
    print("speed 5", flush=True)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 29, 1 << 29))
    bytearray(1 << 31)


# What they leave behind.


def outlive_the_program():
    """In a child of it: returns once its end was noticed. Children are asked to end soon after; that has to wait."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    path = stream()
    wait_until(lambda: events(path, "exit"))


def forks_and_exits():
    """The child does the work, after the program has ended."""
    if os.fork() == 0:
        outlive_the_program()
        print("speed 999", flush=True)
        os._exit(0)
    os._exit(0)


def prints_after_its_end():
    print("speed 5", flush=True)
    if os.fork() == 0:
        outlive_the_program()
        os.write(1, b"speed 999\n")
        os._exit(0)
    os._exit(0)


def daemonises_and_prints():
    print("speed 5", flush=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            outlive_the_program()
            os.environ.clear()
            os.write(1, b"speed 999\n")
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
            time.sleep(60)
        os._exit(0)
    os._exit(0)


def leaves_a_sleeper():
    print("speed 5", flush=True)
    subprocess.Popen(["sleep", "300"], start_new_session=True)


def leaves_a_stubborn_sleeper():
    print("speed 5", flush=True)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(300)"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()


def leaves_many_children():
    print("speed 5", flush=True)
    for _ in range(int(os.environ.get("LIES_CHILDREN", "50"))):
        if os.fork() == 0:
            os.setsid()
            time.sleep(300)
            os._exit(0)


def leaves_a_chain_of_children():
    print("speed 5", flush=True)
    for _ in range(30):
        if os.fork() != 0:
            os._exit(0)
        os.setsid()
    time.sleep(300)


def eats_memory_and_is_done():
    block = bytearray(300_000_000)
    block[::4096] = b"x" * len(block[::4096])
    print("speed 5", flush=True)


# Whom they attack.


def kills_its_group():
    print("speed 5", flush=True)
    os.killpg(0, signal.SIGKILL)


def kills_its_parent():
    print("speed 5", flush=True)
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(5)


def terminates_its_parent():
    print("speed 5", flush=True)
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(5)


def stops_its_parent():
    print("speed 5", flush=True)
    parent = os.getppid()
    os.kill(parent, signal.SIGSTOP)
    if os.fork() == 0:
        time.sleep(0.5)
        os.kill(parent, signal.SIGCONT)
        os._exit(0)
    os.wait()


def kills_the_group_of_its_parent():
    print("speed 5", flush=True)
    os.killpg(os.getpgid(os.getppid()), signal.SIGKILL)
    time.sleep(5)


def stream():
    return json.loads(os.environ["BENCHPROBE_CONFIG"])["stream"]


def say(**event):
    with open(stream(), "a") as file:
        file.write(json.dumps(event) + "\n")


def spoofs_a_good_end():
    say(event="end", t=time.perf_counter_ns(), exit_code=0, duration_s=0.001, cpu_s=0.001)
    sys.exit(1)


def spoofs_a_numbered_end():
    say(event="end", n=4, t=time.perf_counter_ns(), exit_code=0, duration_s=0.001, cpu_s=0.001)
    print("speed 5")


def spoofs_a_metric():
    say(event="metric", t=time.perf_counter_ns(), name="speed", values=[999.0], lines=[1])
    print("speed 5")


def spoofs_samples():
    say(event="sample", t=time.perf_counter_ns(), sampler="process", values={"rss_bytes": 1})
    print("speed 5")


def spoofs_a_message():
    say(event="message", t=time.perf_counter_ns(), severity="info", source="agent", text="all is well")
    print("speed 5")


def truncates_its_stream():
    os.truncate(stream(), 0)
    print("speed 5")


def removes_its_stream():
    os.unlink(stream())
    print("speed 5")


def replaces_its_stream():
    os.unlink(stream())
    with open(stream(), "w") as file:
        file.write(json.dumps({"event": "end", "n": 0, "exit_code": 0, "duration_s": 0.1}) + "\n")
    print("speed 5")


def writes_rubbish_to_its_stream():
    with open(stream(), "ab") as file:
        file.write(b"rubbish\n\xff\xfe\n{\n[1]\nnull\n{}\n")
    print("speed 5")


def writes_a_huge_line_to_its_stream():
    with open(stream(), "ab") as file:
        file.write(b'{"event": "give", "process": 1, "values": {"x": ' + b"9" * 2_000_000 + b"}}\n")
    print("speed 5")


def removes_its_log():
    print("speed 5", flush=True)
    os.unlink(stream()[: -len(".data")] + ".log")


def truncates_its_log():
    print("speed 5\nspeed 7", flush=True)
    wait_until(lambda: 7.0 in [value for metric in events(stream(), "metric") for value in metric["values"]])
    os.truncate(stream()[: -len(".data")] + ".log", 0)


def rewrites_run_json():
    folder = os.path.dirname(stream())
    with open(f"{folder}/run.json", "wb") as file:
        file.write(b"\xff{")
    print("speed 5")


def rewrites_the_plan():
    folder = os.path.dirname(stream())
    for name in ("plan.json", "machine.json", "provenance.json"):
        with open(f"{folder}/{name}", "wb") as file:
            file.write(b"\xff{")
    print("speed 5")


def changes_benchprobe():
    import benchprobe

    with open(benchprobe.__file__, "a") as file:
        file.write("# changed\n")
    print("speed 5")


# Loops. `python programs.py NAME` is run with --stop 30 --warmup 3.


def loop_of_steps(seconds=0.002, steps=60, name="train", **more):
    from benchprobe import iterate

    for _ in iterate(name, range(steps), **more):
        time.sleep(seconds)


def has_no_step():
    loop_of_steps(steps=0)


def is_left_at_once():
    from benchprobe import iterate

    for _ in iterate("train", range(60)):
        break


def is_left_by_break():
    from benchprobe import iterate

    for n in iterate("train", range(60)):
        time.sleep(0.002)
        if n == 20:
            break


def is_left_by_an_exception():
    from benchprobe import iterate

    for n in iterate("train", range(60)):
        time.sleep(0.002)
        if n == 20:
            raise RuntimeError("in the loop")


def is_left_by_exit_0():
    from benchprobe import iterate

    for n in iterate("train", range(60)):
        time.sleep(0.002)
        if n == 20:
            sys.exit(0)


def is_left_by_os_exit():
    from benchprobe import iterate

    for _ in iterate("train", range(60)):
        wait_until(tells_of_my_loop)  # and not of its first step, which is never done
        os._exit(0)


def is_never_left():
    loop_of_steps(steps=10**9)


def has_a_batch_size_of_0():
    loop_of_steps(batch_size=0)


def has_a_negative_batch_size():
    loop_of_steps(batch_size=-5)


def has_a_batch_size_that_is_no_number():
    loop_of_steps(batch_size="many")


def has_a_batch_size_of_nan():
    loop_of_steps(batch_size=float("nan"))


def has_a_huge_batch_size():
    loop_of_steps(batch_size=10**400)


def lies_about_its_length():
    from benchprobe import iterate

    class Liar:
        def __len__(self):
            return 1_000_000

        def __iter__(self):
            return iter(range(20))

    for _ in iterate("train", Liar()):
        time.sleep(0.002)


def cannot_tell_its_length():
    from benchprobe import iterate

    class Broken:
        def __len__(self):
            raise RuntimeError("no length")

        def __iter__(self):
            return iter(range(60))

    for _ in iterate("train", Broken()):
        time.sleep(0.002)


def has_data_that_fail():
    from benchprobe import iterate

    def data():
        yield from range(20)
        raise OSError("the data are gone")

    for _ in iterate("train", data()):
        time.sleep(0.002)


def gives_a_nan_loss():
    from benchprobe import give, iterate

    for n in iterate("train", range(60)):
        time.sleep(0.002)
        give(loss=float("nan") if n == 20 else 1.0)


def gives_a_rate():
    from benchprobe import give, iterate

    for _ in iterate("train", range(60)):
        time.sleep(0.002)
        give(rate=7.0)


def gives_a_step_time():
    from benchprobe import give, iterate

    for _ in iterate("train", range(60)):
        time.sleep(0.002)
        give(step_time=2.0)


def gives_a_huge_number():
    from benchprobe import give

    loop_of_steps()
    give(x=2**1024)


def gives_words():
    from benchprobe import give

    loop_of_steps()
    give(x="fast", y=None, z=[1, 2], w=object())


def gives_an_odd_name():
    from benchprobe import give

    loop_of_steps()
    give(**{"\udcff\n": 1.0, "": 2.0})


def gives_very_many_names():
    from benchprobe import give, iterate

    for n in iterate("train", range(60)):
        time.sleep(0.001)
        give(**{f"name{n}_{m}": 1.0 for m in range(50)})


def puts_epochs_around_train():
    from benchprobe import iterate

    for _ in iterate("epoch", range(3)):
        for _ in iterate("train", range(20), batch_size=8):
            time.sleep(0.002)


def is_sane_before_it_trains():
    loop_of_steps(name="sanity", seconds=0.0001, steps=10)
    loop_of_steps(batch_size=8)


def comes_in_bursts():
    from benchprobe import iterate

    for n in iterate("train", range(300)):
        time.sleep(0.05 if n % 10 == 9 else 0.001)


def waits_for_data():
    from benchprobe import iterate

    def data():
        for n in range(60):
            time.sleep(0.02)
            yield n

    for _ in iterate("train", data()):
        time.sleep(0.001)


def slows_the_clock():
    """Every clock that Python has runs ten times slower, from before benchprobe is imported."""
    for name in ("perf_counter", "monotonic", "time"):
        real, real_ns = getattr(time, name), getattr(time, f"{name}_ns")
        began, began_ns = real(), real_ns()
        setattr(time, name, lambda real=real, began=began: began + (real() - began) / 10)
        setattr(time, f"{name}_ns", lambda real=real_ns, began=began_ns: began + (real() - began) // 10)
    loop_of_steps(seconds=0.1)  # long enough for another clock to tell


def turns_the_clock_back():
    real, state = time.perf_counter_ns, {"back": 0}
    time.perf_counter_ns = lambda: real() - state["back"]
    from benchprobe import iterate

    for n in iterate("train", range(60)):
        time.sleep(0.002)
        if n == 20:
            state["back"] = 2_000_000_000


def sets_the_wall_clock_back():
    real, began = time.time, time.time()
    time.time = lambda: real() - 10_000 if real() - began > 0.05 else real()
    loop_of_steps()


def breaks_json():
    json.dumps = json.JSONEncoder.encode = lambda *_, **__: 1 / 0
    loop_of_steps()


def breaks_os_write():
    loop_of_steps(steps=20)
    os.write = lambda *_: 0
    loop_of_steps(name="more")


def closes_our_descriptors():
    from benchprobe import iterate

    for n in iterate("train", range(60)):
        time.sleep(0.002)
        if n == 5:
            os.closerange(3, 256)


def takes_our_descriptors():
    from benchprobe import iterate

    for n in iterate("train", range(60)):
        time.sleep(0.002)
        if n == 5:
            null = os.open(os.devnull, os.O_WRONLY)
            for fd in range(3, 64):
                os.dup2(null, fd)


def forgets_its_configuration():
    del os.environ["BENCHPROBE_CONFIG"]
    loop_of_steps()


def changes_its_configuration():
    os.environ["BENCHPROBE_CONFIG"] = '{"stream": "/nowhere/at/all"}'
    loop_of_steps()


def clears_the_environment():
    from benchprobe import iterate

    os.environ.clear()
    for _ in iterate("train", range(60)):
        time.sleep(0.002)


def claims_another_rank():
    os.environ["RANK"], os.environ["WORLD_SIZE"] = "7", "8"
    loop_of_steps()


def has_two_of_one_rank():
    """Two processes say that they are rank 0; one dies in its loop."""
    child = os.fork()
    loop_of_a_rank(0, is_lost=child == 0)
    os.wait()


def loses_a_rank():
    """Of two ranks, one dies in its loop, and the program is content."""
    child = os.fork()
    loop_of_a_rank(1 if child == 0 else 0, is_lost=child == 0)
    os.wait()


def loop_of_a_rank(rank, is_lost):
    os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), "2"
    from benchprobe import iterate

    for n in iterate("train", range(60)):
        time.sleep(0.002)
        if is_lost and n == 5:
            wait_until(tells_of_my_loop)
            os.kill(os.getpid(), signal.SIGKILL)


def forks_in_its_loop():
    from benchprobe import iterate

    for n in iterate("train", range(60)):
        time.sleep(0.002)
        if n == 10 and os.fork() == 0:
            continue
        if n == 59:
            try:
                os.wait()
            except ChildProcessError:
                pass


def loops_in_threads():
    threads = [threading.Thread(target=loop_of_steps, kwargs={"name": f"t{n}"}) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def spoofs_steps():
    """Five seconds of steps, by a loop that never ran, of a process that lived for a fraction of one."""
    loop = {"process": os.getpid(), "loop": 9, "t": time.perf_counter_ns()}
    steps = {"step_ns": [100_000_000] * 50, "wait_ns": [0] * 50, "items": 10**6, "phase": "measured", "first": 0}
    say(event="probe", version=1, rank=None, **loop)
    say(event="loop", name="train", total=None, parent=None, batch_size=10**6, counts=True, **loop)
    say(event="steps", **steps, **loop)
    say(event="loop_end", steps=50, how="exhausted", **loop)
    time.sleep(0.02)


def is_stopped_for_a_while():
    from benchprobe import iterate

    for n in iterate("train", range(60)):
        time.sleep(0.005)
        if n == 10:
            subprocess.Popen(["sh", "-c", f"sleep 2; kill -CONT {os.getpid()}"])
            os.kill(os.getpid(), signal.SIGSTOP)


def fails_in_close():
    from benchprobe import iterate

    def data():
        try:
            yield from range(1000)
        finally:
            raise RuntimeError("while closing")

    for _ in iterate("train", data()):
        time.sleep(0.002)


def recurses_deeply():
    from benchprobe import give, iterate

    def deep(n):
        return give(loss=1.0) if n == 0 else deep(n - 1)

    sys.setrecursionlimit(3000)
    for _ in iterate("train", range(60)):
        time.sleep(0.002)
        deep(2500)


# Deadlines. Run with --timeout 1s.


def runs_for_ever():
    print("speed 5", flush=True)
    time.sleep(600)


def computes_for_ever():
    print("speed 5", flush=True)
    while True:
        pass


def ignores_sigterm():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("speed 5", flush=True)
    while True:
        time.sleep(1)


def exits_0_on_sigterm():
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print("speed 5", flush=True)
    time.sleep(600)


def forks_on_sigterm():
    def again(*_):
        if os.fork() != 0:
            os._exit(0)

    signal.signal(signal.SIGTERM, again)
    print("speed 5", flush=True)
    while True:
        time.sleep(600)


def stops_itself():
    print("speed 5", flush=True)
    os.kill(os.getpid(), signal.SIGSTOP)


def leaves_its_session_and_runs_for_ever():
    print("speed 5", flush=True)
    if os.fork() == 0:
        os.setsid()
        os.environ.clear()
        time.sleep(600)
    time.sleep(600)


def prints_for_ever():
    while True:
        sys.stdout.write("speed 5\n" * 1000)
        time.sleep(0.01)


# JSON lines.


def says_json_nan():
    print('{"speed": NaN}')


def says_json_infinity():
    print('{"speed": 1e999}')


def says_json_true():
    print('{"speed": true}')


def says_json_text():
    print('{"speed": "fast"}')


def says_json_null():
    print('{"speed": null}')


def says_json_nested():
    print("[" * 100_000 + '\n{"speed": 5}')


def says_json_twice():
    print('{"speed": 5, "speed": 7}')


def says_json_cut_off():
    print('{"speed": 5')


if __name__ == "__main__":
    globals()[sys.argv[1]]()
