"""Supervising one job: start its program, sample it, read its log, end it in time, and say how it ended.

A supervisor is a process of its own with one thread, forked by the node agent, and the subreaper of everything its
program starts: whatever has no parent left becomes its child, so "no child is left" means that the job is over.
"""

from __future__ import annotations

import os
import resource
import signal
import time

from benchwright.agent import kernel
from benchwright.agent.barrier import all_done, leave_barrier, say_done
from benchwright.agent.data_tail import INTERVAL_S, DataTail, open_data_tail
from benchwright.agent.endings import ran_out_of_memory, read_oom_kills
from benchwright.agent.job_log import JobLog
from benchwright.agent.processes import LINUX, PAGE_BYTES, read_stat
from benchwright.agent.program_environment import build_environment, device_tokens, visible_devices
from benchwright.agent.samplers.base import Subject
from benchwright.agent.sampling import Sampling
from benchwright.agent.signals import Signals
from benchwright.agent.spawn import CannotStart, spawn
from benchwright.agent.speaker import Speaker, fits
from benchwright.agent.stream import VERSION, StreamWriter
from benchwright.agent.takedown import Takedown
from benchwright.domain.secrets import redact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from benchwright.domain.job import Job

_NS = 1_000_000_000
_LINGER_S = 0.5  # helpers such as Python's resource tracker end by themselves a moment after their program
_TAKEDOWN_STEP_S = 0.02
_PATIENCE_S = 5.0  # with a full disk
_UNKILLABLE_S = 15.0  # a process in the kernel's hands; nothing more can be done about it


class Supervisor:
    """One job from its start to its end. `marker` goes into the environment of all its processes."""

    def __init__(self, job: Job, speaker: Speaker, samplers: Mapping[str, str], marker: str) -> None:
        self.job = job
        self._speaker = speaker
        self._samplers = samplers
        self._marker = marker
        self._agent = os.getppid()
        self._signals = Signals((signal.SIGTERM, signal.SIGCHLD), ignored=(signal.SIGINT, signal.SIGHUP))
        self._stream = StreamWriter(job.stream)
        self._sampling: Sampling | None = None
        self._log: JobLog | None = None
        self._data: DataTail | None = None
        self._takedown: Takedown | None = None
        self._pid: int | None = None
        self._wait_status: int | None = None
        self._fork_rss_bytes = 0
        self._began_ns = self._ended_ns = time.perf_counter_ns()
        self._noted_end_ns: int | None = None
        self._max_rss_bytes = 0
        self._oom_kills = read_oom_kills()
        self._timed_out = self._stopped = self._agent_lost = self._early_stop = False
        self._detail: str | None = None

    def run(self) -> None:
        """Everything, until the main process has been told how it ended."""
        self._append("stream", version=VERSION, job=self.job.id, wall=time.time())
        if self._start():
            while not self._is_over():
                self._signals.wait(self._idle_s())
                self._stop_if_asked()
                self._stop_if_late()
                self._take_down()
                self._sample()
                self._read_log()
                self._read_data()
        self._finish()

    def stop_at_once(self) -> None:
        """The node agent was gone before we began to listen for it."""
        self._signals.count[signal.SIGTERM] += 1

    # The stages of `run`, in their order.

    def _start(self) -> bool:
        job = self.job
        try:
            environment = build_environment(job, os.environ, self._marker)
            shown = redact(environment)
            _make_folders(job.folders)
            _write_files(job.files)
            self._log = JobLog(job, self._stream, self._speaker)
            self._data = open_data_tail(job, environment, self._stream)
            before_exec = read_stat(os.getpid()) if LINUX else None
            self._fork_rss_bytes = before_exec.rss_pages * PAGE_BYTES if before_exec else 0
            self._began_ns, began_wall = time.perf_counter_ns(), time.time()
            self._signals.on_signal = self._note_end
            self._pid = spawn(job, environment, self._log.fd, self._data.fd if self._data is not None else None)
            self._note_end()  # it may have ended before its number was known here
        except (CannotStart, LookupError) as error:
            self._detail = str(error.args[0])
        except OSError as error:
            place = error.filename or f"the log {job.log}"
            self._detail = f"{place} cannot be written: {error.strerror or error}; check the run folder"
        except Exception as error:  # a pattern that cannot be compiled, a broken extractor
            self._detail = str(error)
        if self._pid is None:
            self._append("message", severity="error", source="agent", text=self._detail)
            leave_barrier(job.barrier)
            return False
        if self._data is not None:
            self._data.started()
        self._speaker.say("started", job=job.id, pid=self._pid, supervisor=os.getpid())
        self._stream.append(
            "start",
            t=self._began_ns,
            wall=began_wall,
            pid=self._pid,
            argv=job.argv,
            cwd=job.cwd,
            env=shown,
            devices=job.devices,
            cores=job.cores,
        )
        self._sampling = Sampling(
            self._samplers, self._subject(environment), self._stream, job.sample_interval_s, self._began_ns
        )
        self._sample()
        return True

    def _subject(self, environment: Mapping[str, str]) -> Subject:
        if self.job.devices and "CUDA_VISIBLE_DEVICES" not in self.job.env:
            return Subject(devices=device_tokens(self.job.devices, os.environ))
        return Subject(devices=visible_devices(environment))

    def _note_end(self, _signal: int = signal.SIGCHLD) -> None:
        """At the moment of the signal: reading a log, however long a pattern takes, must not lengthen the program's time."""
        if self._pid is None or self._noted_end_ns is not None or not hasattr(os, "waitid"):
            return
        try:
            if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                self._noted_end_ns = time.perf_counter_ns()
        except ChildProcessError:
            pass  # reaped already

    def _is_over(self) -> bool:
        """Reap what has ended; True once the program and everything it left behind have."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                break
            self._max_rss_bytes = max(self._max_rss_bytes, usage.ru_maxrss * (1024 if LINUX else 1))
            if pid == self._pid:
                self._ended_ns = self._noted_end_ns or time.perf_counter_ns()
                self._wait_status = status
                leave_barrier(self.job.barrier)
        if self._wait_status is not None and self._takedown is None:
            self._takedown = Takedown(self.job.grace_s, time.perf_counter_ns(), wait_s=_LINGER_S)
        return self._gives_up()

    def _gives_up(self) -> bool:
        down = self._takedown
        if down is None or not down.killed:
            return False
        if time.perf_counter_ns() - down.began_ns < (self.job.grace_s + _UNKILLABLE_S) * _NS:
            return False
        self._detail = "some of its processes cannot be killed: they wait in the kernel for a device or a file system"
        return True

    def _idle_s(self) -> float:
        """How long nothing needs to be done unless a signal comes."""
        log = self._log
        if (log is not None and log.has_more) or (self._data is not None and self._data.has_more):
            return 0.0
        now_ns = time.perf_counter_ns()
        wakes = [now_ns + _NS * 60]
        if self._takedown is not None:
            wakes.append(max(self._takedown.next_ns, now_ns + int(_TAKEDOWN_STEP_S * _NS)))
        elif self.job.timeout_s is not None:
            wakes.append(self._began_ns + int(self.job.timeout_s * _NS))
        if self._sampling is not None and self._wait_status is None and self._sampling.due_ns is not None:
            wakes.append(self._sampling.due_ns)
        if log is not None and log.interval_s is not None:
            wakes.append(now_ns + int(log.interval_s * _NS))
        if self._data is not None:
            wakes.append(now_ns + int(INTERVAL_S * _NS))
        return max(0, min(wakes) - now_ns) / _NS

    def _stop_if_asked(self) -> None:
        if not self._is_asked_to_stop():
            return
        if not self._stopped and not self._agent_lost:
            self._agent_lost = os.getppid() != self._agent
            self._stopped = not self._agent_lost
            if self._takedown is None or self._wait_status is not None:
                self._takedown = Takedown(self.job.grace_s, time.perf_counter_ns())
        if self._signals.count[signal.SIGTERM] > 1 and self._takedown is not None:
            self._takedown.hurry()

    def _is_asked_to_stop(self) -> bool:
        return self._signals.count[signal.SIGTERM] > 0 or self._speaker.main_is_gone

    def _stop_if_late(self) -> None:
        if self._takedown is not None or self.job.timeout_s is None or self._wait_status is not None:
            return
        now_ns = time.perf_counter_ns()
        if now_ns - self._began_ns >= self.job.timeout_s * _NS:
            self._timed_out = True
            self._takedown = Takedown(self.job.grace_s, now_ns)

    def _take_down(self) -> None:
        if self._takedown is not None:
            self._takedown.advance(time.perf_counter_ns())

    def _sample(self) -> None:
        if self._sampling is None or self._wait_status is not None or self._takedown is not None:
            return
        if self._sampling.advance(time.perf_counter_ns()):
            self._stream.flush()
            self._report_progress()

    def _report_progress(self) -> None:
        assert self._sampling is not None
        elapsed_s = round((time.perf_counter_ns() - self._began_ns) / _NS, 3)
        values: dict[str, Any] = {"elapsed_s": elapsed_s, **self._sampling.newest}
        if self._log is not None:
            values["metrics"] = {**self._log.newest, **(self._data.newest if self._data is not None else {})}
        message = {"job": self.job.id, "values": values}
        if not self._speaker.backed_up and fits("progress", message):
            self._speaker.say("progress", **message)

    def _read_log(self) -> None:
        self._speaker.flush()
        if self._log is not None:
            self._log.advance(time.perf_counter_ns())

    def _read_data(self) -> None:
        """Take over what was said through voir; a program that was measured enough may ask to be ended by it.

        One that was measured together with others goes on until they have enough, too.
        """
        if self._data is None:
            return
        self._data.advance(time.perf_counter_ns())
        if not self._data.stop_asked or self._takedown is not None or self._wait_status is not None:
            return
        say_done(self.job.barrier)
        if all_done(self.job.barrier):
            self._early_stop = True
            self._takedown = Takedown(self.job.grace_s, time.perf_counter_ns())

    # After the end.

    def _finish(self) -> None:
        if self._sampling is not None:
            self._sampling.advance(self._ended_ns, everything=True)
            self._sampling.close()
        self._report_leftovers()
        if self._data is not None:
            self._data.finish(self._ended_ns)
        exit_code, signal_number = self._ending()
        out_of_memory = self._ran_out_of_memory(exit_code, signal_number)
        if self._log is not None:
            ended_well = (exit_code == 0 or self._early_stop) and not (
                self._stopped or self._timed_out or self._agent_lost
            )
            self._log.finish(self._is_asked_to_stop, succeeded=ended_well)
            self._stop_if_asked()  # asked only now: the log was not read to its end
        self._write_end(exit_code, signal_number, out_of_memory)

    def _report_leftovers(self) -> None:
        down = self._takedown
        ours = self._stopped or self._agent_lost or self._timed_out or self._early_stop
        if down is None or ours or not down.asked:
            return
        text = f"the program ended but {len(down.asked)} process(es) it had started were still running; they were ended"
        if down.killed:
            text += f", {len(down.killed)} of them with SIGKILL"
        self._append("message", severity="warning", source="agent", text=text)

    def _ending(self) -> tuple[int | None, int | None]:
        if self._wait_status is None:
            return None, None
        code = os.waitstatus_to_exitcode(self._wait_status)
        return (code, None) if code >= 0 else (None, -code)

    def _ran_out_of_memory(self, exit_code: int | None, signal_number: int | None) -> bool:
        ours = self._stopped or self._timed_out or self._agent_lost or self._early_stop
        if self._log is None or exit_code == 0 or ours:
            return False
        return ran_out_of_memory(
            exit_code=exit_code,
            signal_number=signal_number,
            killed_by_us=ours,
            before=self._oom_kills,
            after=read_oom_kills(),
            log_end=self._log.read_end(),
        )

    def _write_end(self, exit_code: int | None, signal_number: int | None, out_of_memory: bool) -> None:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        if self._agent_lost:
            self._detail = "the agent was killed"
        elif self._detail is None and self._timed_out:
            self._detail = f"it ran longer than {self.job.timeout_s:g} s; raise the timeout if it needs more"
        how: dict[str, Any] = {
            "exit_code": exit_code,
            "signal": signal_number,
            "timed_out": self._timed_out,
            "stopped": self._stopped,
            "out_of_memory": out_of_memory,
            "duration_s": (self._ended_ns - self._began_ns) / _NS if self._pid is not None else 0.0,
            "detail": self._detail,
        }
        more = {"cpu_s": usage.ru_utime + usage.ru_stime, **self._peak()}
        if self._agent_lost:
            more["agent_lost"] = True
        if self._early_stop:
            more["early_stop"] = True
        self._append("end", wall=time.time(), **how, **more)
        if not self._stream.flush(_PATIENCE_S) or self._stream.lost:
            # Nobody can know what was measured, so it must not look like a success.
            how["detail"] = self._stream.trouble
            how["exit_code"] = None if exit_code == 0 else exit_code
        if how["detail"]:
            how["detail"] = how["detail"][:1500]
        self._stream.close()
        self._speaker.say("finished", outcome={"job": self.job.id, **how})
        # A main process that is suspended reads this when it is continued; one that is gone is noticed.
        while not self._speaker.flush(_PATIENCE_S) and not self._speaker.main_is_gone:
            pass

    def _peak(self) -> dict[str, Any]:
        """The most memory seen: of the tree in a sample, or of one process as the kernel kept it.

        The kernel counts the copy of this supervisor that the program was before exec. A maximum not above that says
        only that the program had no more; it is given, marked as a bound, where there was no time for two samples.
        """
        if self._pid is None or self._sampling is None:
            return {"max_rss_bytes": None}
        sampled = self._sampling.peak_rss_bytes or 0
        if self._max_rss_bytes > self._fork_rss_bytes * 1.05:
            return {"max_rss_bytes": max(self._max_rss_bytes, sampled)}
        if sampled and self._ended_ns - self._began_ns >= self.job.sample_interval_s * _NS:
            return {"max_rss_bytes": sampled}
        return {"max_rss_bytes": max(self._max_rss_bytes, sampled), "max_rss_is_bound": True}

    def _append(self, event: str, **values: Any) -> None:
        self._stream.append(event, t=time.perf_counter_ns(), **values)


def _make_folders(folders: Iterable[str]) -> None:
    """Data may be shared and read-only: whether the program can do without one is its own affair."""
    for folder in folders:
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError:
            pass


def _write_files(files: Mapping[str, str]) -> None:
    """What the program is to find; each is there whole or not at all."""
    for path, text in files.items():
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        aside = f"{path}.{os.getpid()}.part"
        with open(aside, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(aside, path)


def supervise(job: Job, channel: int, samplers: Mapping[str, str], marker: str, agent: int) -> None:
    """The life of a supervisor process, from just after the fork. SIGTERM is blocked until it listens."""
    kernel.adopt_orphans()
    supervisor = Supervisor(job, Speaker(channel), samplers, marker)
    if not kernel.signal_me_when_parent_dies(signal.SIGTERM, agent):
        supervisor.stop_at_once()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    supervisor.run()
