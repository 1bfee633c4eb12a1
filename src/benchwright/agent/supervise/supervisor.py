"""Supervises one job: starts its program, samples it, reads its log, ends it in time, and reports how it ended.

A supervisor is a single-threaded process that the node agent forks. It is the subreaper of everything its program starts:
orphans become its children, so the job is over when it has no child left.
"""

from __future__ import annotations

import os
import signal
import time

from benchwright.agent.message_pipe import MessageWriter, fits
from benchwright.agent.output.data_tail import INTERVAL_S, DataTail, open_data_tail
from benchwright.agent.output.job_log import JobLog
from benchwright.agent.processes.process_tree import descendants
from benchwright.agent.samplers.sampler_loop import Sampling
from benchwright.agent.stream import FULL, VERSION, StreamWriter, has_event
from benchwright.agent.supervise import launch_end
from benchwright.agent.supervise.barrier import all_done, leave_barrier, say_done
from benchwright.agent.supervise.launch_end import LaunchEndWatch, Takedown
from benchwright.agent.supervise.pause_neighbours import Holding
from benchwright.agent.supervise.pauses import JobMemoryLimit, PauseWatch
from benchwright.agent.supervise.program import Program
from benchwright.agent.supervise.program_environment import build_environment, prepare_files, start_facts, visible_to
from benchwright.agent.supervise.signals import SignalQueue
from benchwright.agent.supervise.spawn import CannotStart, ColdStart, Started
from benchwright.core.kept_variables import kept_variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from benchwright.agent.processes.job_group import AgentMark
    from benchwright.core.entry_points import EntryPoint
    from benchwright.core.job import Job

_NS = 1_000_000_000
_CHECK_BEGINS = "check_begin"  # the event of a program that was measured, and is checked from then on
_LINGER_S = 0.5  # helpers such as Python's resource tracker end shortly after their program
_TAKEDOWN_STEP_S = 0.02
# Bookkeeping at the start could take a core from a program that runs only this long, and distort its time.
_QUIET_S = 0.03
_PATIENCE_S = 5.0  # with a full disk
_TICK_S, _TICKING_S, _TICKS_BEGIN_S = 0.1, 3.0, 30.0  # the lines of a program's first seconds are stamped as they come
_UNKILLABLE_S = 15.0  # a process stuck in the kernel: nothing more can be done


class Supervisor:
    """One job from its start to its end."""

    def __init__(
        self,
        job: Job,
        speaker: MessageWriter,
        samplers: Iterable[EntryPoint],
        mark: AgentMark,
        start: ColdStart | None = None,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        """`start`: how its program is started. `done`: called when all that is left to do is to report."""
        self.job = job
        self._start_program = start or ColdStart()
        self._done = done
        self._speaker = speaker
        self._samplers = samplers
        self._mark = mark
        self._agent = os.getppid()
        listened = (signal.SIGTERM, signal.SIGCHLD, signal.SIGCONT)
        self._signals = SignalQueue(listened, ignored=(signal.SIGINT, signal.SIGHUP))
        self._stream = StreamWriter(job.stream)
        self._sampling: Sampling | None = None
        self._log: JobLog | None = None
        self._data: DataTail | None = None
        self._takedown: Takedown | None = None
        self._program = Program(self._on_end, self._start_program)
        self._holding = Holding(job.turn, self._program)
        self._pauses = PauseWatch(self._stream, self._program, lambda: self._signals.count[signal.SIGCONT])
        self._oom_kills = launch_end.read_oom_kills()
        self._limit: JobMemoryLimit | None = None
        self._launch_end = LaunchEndWatch(job)
        self._too_large = self._timed_out = self._stopped = self._agent_lost = self._early_stop = self._disk_full = (
            False
        )
        self._detail: str | None = None
        self._timeout_s = job.timeout_s
        self._ticks_until_ns = 0  # 0: the program has written nothing yet

    def run(self) -> None:
        """The whole job, until the main process knows how it ended."""
        mark = {"mark": self._mark.token, "group": self._mark.group}
        self._append("stream", version=VERSION, job=self.job.id, wall=time.time(), **mark)
        if self._start():
            while not self._is_over():
                self._wait()
                self._stop_if_asked()
                self._stop_if_beyond_limits()
                self._take_down()
                self._look_at_tasks()
                self._sample()
                self._tick()
                self._read_log()
                self._read_data()
        self._finish()

    def stop_at_once(self) -> None:
        """The node agent ended before we could listen for it."""
        self._signals.count[signal.SIGTERM] += 1

    def close(self) -> None:
        """Stop listening to signals."""
        self._signals.close()

    # The stages of `run`, in their order.

    def _start(self) -> bool:
        job = self.job
        started: Started | None = None
        try:
            environment = build_environment(job, os.environ, f"{self._mark.token}/{job.id}")
            shown = kept_variables(environment, also=job.recorded, changed=job.env.keys() - set(job.unrecorded))
            prepare_files(job)
            self._log = JobLog(job, self._stream, self._speaker)
            self._data = open_data_tail(job, environment, self._stream)
            self._signals.on_signal = self._program.on_signal
            data_fd = self._data.fd if self._data is not None else None
            started = self._program.start(job, environment, self._log.fd, data_fd, self._is_asked_to_stop_early)
        except (CannotStart, LookupError) as error:
            self._detail = str(error.args[0])
        except OSError as error:
            self._disk_full = error.errno in FULL
            place = error.filename or f"the log {job.log}"
            self._detail = f"{place} cannot be written: {error.strerror or error}; check the run folder"
        except Exception as error:  # a pattern that cannot be compiled, a broken extractor
            self._detail = str(error)
        if started is None:
            self._append("message", severity="error", source="agent", text=self._detail)
            leave_barrier(job)
            return False
        self._pauses.begin()
        began_wall = self._program.began_wall
        self._let_it_begin()
        if self._data is not None:
            self._data.started()
        self._speaker.say("started", job=job.id, pid=self._program.pid, supervisor=os.getpid())
        facts = start_facts(job, shown, is_warm=started.warm)
        self._stream.append("start", t=self._program.began_ns, wall=began_wall, pid=self._program.pid, **facts)
        if started.remark is not None:
            self._append("message", severity="info", source="agent", text=f"started afresh: {started.remark}")
        subject = self._program.sampled(visible_to(job, environment))
        self._sampling = Sampling(self._samplers, subject, self._stream, _sampled_every_s(job), self._program.began_ns)
        self._limit = JobMemoryLimit(job.max_memory_bytes, subject)
        self._sample()
        return True

    def _let_it_begin(self) -> None:
        """Undisturbed; but where others want all cores, its waiting for one is watched from the start."""
        until_ns = time.perf_counter_ns() + int(_QUIET_S * _NS)
        crowded = os.getloadavg()[0] > (os.cpu_count() or 1)
        while self._program.ended_ns is None and (now_ns := time.perf_counter_ns()) < until_ns:
            look_ns = self._next_look_ns if crowded else None
            self._signals.wait(max(0, min(until_ns, look_ns or until_ns) - now_ns) / _NS)
            if crowded:
                self._look_at_tasks()

    def _on_end(self) -> None:
        """Output from now on comes from processes that the program left behind."""
        for output in (self._log, self._data):
            if output is not None:
                output.program_ended()

    def _wait(self) -> None:
        idle_s = self._idle_s()
        self._signals.wait(idle_s)
        self._pauses.look(idle_s)
        if self._takedown is None:
            self._holding.look()

    def _is_over(self) -> bool:
        """Reap what has ended; True once the program and all it left have."""
        self._program.note_waiting()
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                break
            if pid in self._start_program.others:
                self._start_program.lost(pid)
                self._program.discount(usage)
                continue
            self._program.note_peak(usage)
            if pid == self._program.pid:
                self._program.reap(status)
                self._pauses.look(0.0)
                self._stream.append("exit", t=self._program.ended_ns)
                leave_barrier(self.job)
                self._launch_end.say_gone()
        if self._program.is_over:
            self._takedown = self._takedown or self._new_takedown(_LINGER_S)
            if self._start_program.others and not descendants(os.getpid(), self._start_program.others):
                return True
        return self._gives_up()

    def _new_takedown(self, wait_s: float = 0.0) -> Takedown:
        others = self._start_program.others
        return Takedown(self.job.grace_s, time.perf_counter_ns(), wait_s=wait_s, spare=others)

    def _gives_up(self) -> bool:
        down = self._takedown
        if down is None or not down.killed:
            return False
        if time.perf_counter_ns() - down.began_ns < (self.job.grace_s + _UNKILLABLE_S) * _NS:
            return False
        self._detail = "some of its processes cannot be killed: they are stuck in the kernel, waiting for a device or a file system"
        return True

    def _idle_s(self) -> float:
        """How long to sleep unless a signal comes."""
        log = self._log
        if (log is not None and log.has_more) or (self._data is not None and self._data.has_more):
            return 0.0
        now_ns = time.perf_counter_ns()
        wakes = [self._holding.next_ns or now_ns + _NS * 60]
        if self._takedown is not None:
            wakes.append(max(self._takedown.next_ns, now_ns + int(_TAKEDOWN_STEP_S * _NS)))
        elif self._launch_end.next_ns is not None:
            wakes.append(self._launch_end.next_ns)
        if self._takedown is None and self._timeout_s is not None:
            wakes.append(self._program.began_ns + self._holding.apart_ns + int(self._timeout_s * _NS))
        if self._sampling is not None and self._limit is not None and not self._program.is_over | self._holding.is_held:
            dues = (self._sampling.due_ns, self._limit.due_ns, self._next_look_ns)
            wakes += [due for due in dues if due is not None]
        if log is not None and log.interval_s is not None:
            wakes.append(now_ns + int(log.interval_s * _NS))
        if self._data is not None:
            wakes.append(now_ns + int(INTERVAL_S * _NS))
        if self._ticks:
            wakes.append(now_ns + int(_TICK_S * _NS))
        return max(0, min(wakes) - now_ns) / _NS

    def _stop_if_asked(self) -> None:
        if not self._is_asked_to_stop():
            return
        if not self._stopped and not self._agent_lost:
            self._agent_lost = os.getppid() != self._agent
            self._stopped = not self._agent_lost
            if self._takedown is None or self._program.is_over:
                self._takedown = self._new_takedown()
        if self._signals.count[signal.SIGTERM] > 1 and self._takedown is not None:
            self._takedown.hurry()

    def _is_asked_to_stop(self) -> bool:
        return self._signals.count[signal.SIGTERM] > 0 or self._speaker.main_is_gone

    def _is_asked_to_stop_early(self) -> bool:
        """While the program is started, which may take long where a warm process starts first."""
        self._holding.look()
        return self._is_asked_to_stop()

    def _stop_if_beyond_limits(self) -> None:
        if self._takedown is not None or self._limit is None or self._program.is_over:
            return
        own_ns = self._program.elapsed_ns - self._holding.apart_ns
        if self._timeout_s is not None and own_ns >= self._timeout_s * _NS:
            if self._extend_for_check():
                return
            self._timed_out = True
            self._takedown = self._new_takedown()
        elif (why := self._limit.why_exceeded(time.perf_counter_ns())) is not None:
            self._too_large, self._detail = True, why
            self._takedown = self._new_takedown()
            self._takedown.hurry()  # it may grow on meanwhile
        elif self._launch_end.is_due(time.perf_counter_ns()):
            self._early_stop = True
            self._takedown = self._new_takedown()

    def _extend_for_check(self) -> bool:
        """Once, if it was measured in time: checking its outputs has a separate limit."""
        limit_s = self.job.check_timeout_s
        if limit_s is None or self._timeout_s != self.job.timeout_s or not has_event(self.job.stream, _CHECK_BEGINS):
            return False
        self._timeout_s = (self.job.timeout_s or 0.0) + limit_s
        return True

    def _take_down(self) -> None:
        if self._takedown is not None:
            self._takedown.advance(time.perf_counter_ns())

    @property
    def _next_look_ns(self) -> int | None:
        """When its threads and processes are to be looked at; None: no longer, or not while it is held."""
        if self._takedown is not None or self._program.ended_ns is not None or self._holding.is_held:
            return None
        return None if self._program.waits is None else self._program.waits.due_ns

    def _look_at_tasks(self) -> None:
        if self._program.waits is not None and self._next_look_ns is not None:
            self._program.waits.look(time.perf_counter_ns())

    def _sample(self) -> None:
        if self._sampling is None or self._program.is_over or self._takedown is not None or self._holding.is_held:
            return
        self._pauses.look(0.0)
        if self._sampling.advance(time.perf_counter_ns()):
            self._pauses.begin_again()
            self._stream.flush()
            self._report_progress()

    def _tick(self) -> None:
        """Shows when the program's newest lines were written by our clock: in a short loop, nothing else does."""
        if self._ticks and self._stream.others_wrote():
            self._ticks_until_ns = self._ticks_until_ns or self._program.elapsed_ns + int(_TICKING_S * _NS)
            self._append("tick")

    @property
    def _ticks(self) -> bool:
        until_ns = self._ticks_until_ns or _TICKS_BEGIN_S * _NS
        return not self._program.is_over and self._program.elapsed_ns < until_ns

    def _report_progress(self) -> None:
        assert self._sampling is not None
        values: dict[str, object] = {"elapsed_s": round(self._program.elapsed_ns / _NS, 3), **self._sampling.newest}
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
        """Copy what the program reported, which may be a request to end it, since it was measured enough.

        A program measured together with others runs on until all have enough.
        """
        if self._data is None:
            return
        self._data.advance(time.perf_counter_ns())
        if not self._data.stop_asked or self._takedown is not None or self._program.is_over:
            return
        say_done(self.job.barrier)
        self._launch_end.say_done()
        if all_done(self.job.barrier):
            self._early_stop = True
            self._takedown = self._new_takedown()

    # After the end.

    def _finish(self) -> None:
        ended_ns = self._program.ended_ns or time.perf_counter_ns()
        self._holding.release()
        if self._sampling is not None:
            self._sampling.advance(ended_ns, everything=True)
            self._sampling.close()
        self._report_leftovers()
        self._report_late_output()
        if self._data is not None:
            self._data.finish(ended_ns)
        exit_code, signal_number = self._program.ending
        self._forgive_stumble(exit_code, signal_number)
        out_of_memory = self._ran_out_of_memory(exit_code, signal_number)
        self._look_at_the_disk(exit_code)
        if self._log is not None:
            ended_well = (exit_code == 0 or self._early_stop) and not (
                self._stopped or self._timed_out or self._agent_lost
            )
            self._log.finish(self._is_asked_to_stop, succeeded=ended_well)
            self._stop_if_asked()  # only now: the log was not read to its end
        self._write_end(exit_code, signal_number, out_of_memory)

    def _forgive_stumble(self, exit_code: int | None, signal_number: int | None) -> None:
        """A program that fails because the others of its launch were stopped early has done its part."""
        failed = exit_code or signal_number is not None
        if failed and not self._we_ended_it and self._launch_end.was_measured():
            self._early_stop = True
            text = "it failed after the launch had been stopped early; what was measured before counts, see its log"
            self._append("message", severity="info", source="agent", text=text)

    @property
    def _we_ended_it(self) -> bool:
        return self._stopped or self._agent_lost or self._timed_out or self._early_stop or self._too_large

    def _report_leftovers(self) -> None:
        down = self._takedown
        if down is None or self._we_ended_it or not down.asked:
            return
        text = launch_end.leftovers_text(len(down.asked), len(down.killed))
        self._append("message", severity="warning", source="agent", text=text)

    def _report_late_output(self) -> None:
        # Both may read the log, whose late bytes must not count twice.
        late_bytes = max((output.late_bytes for output in (self._log, self._data) if output is not None), default=0)
        if late_bytes and not self._we_ended_it:
            self._append("message", severity="warning", source="agent", text=launch_end.late_output_text(late_bytes))

    def _ran_out_of_memory(self, exit_code: int | None, signal_number: int | None) -> bool:
        return self._log is not None and launch_end.ran_out_of_memory(
            exit_code=exit_code,
            signal_number=signal_number,
            killed_by_us=self._we_ended_it,
            before=self._oom_kills,
            after=launch_end.read_oom_kills(),
            log_end=self._log.read_end(),
        )

    def _look_at_the_disk(self, exit_code: int | None) -> None:
        if self._log is None or self._stopped or self._agent_lost:
            return
        failed = exit_code != 0 and not self._early_stop
        self._disk_full = self._disk_full or launch_end.ran_out_of_disk(
            failed=failed, log_end=self._log.read_end(), log=self.job.log
        )
        if self._disk_full:
            what = "it ran out of disk space" if failed else "the disk is full, so its output may be incomplete"
            self._detail = f"{what}; free some space and resume the run, which repeats this launch"

    def _write_end(self, exit_code: int | None, signal_number: int | None, out_of_memory: bool) -> None:
        program = self._program
        if self._agent_lost:
            self._detail = "the agent was killed"
        elif self._detail is None and self._timed_out:
            self._detail = f"it ran longer than {self._timeout_s:g} s; raise the timeout if it needs more"
        how: dict[str, Any] = {
            "exit_code": exit_code,
            "signal": signal_number,
            "timed_out": self._timed_out,
            "stopped": self._stopped,
            "out_of_memory": out_of_memory or self._too_large,
            "duration_s": program.elapsed_ns / _NS if program.pid is not None else 0.0,
            "detail": self._detail,
        }
        sampled = self._sampling.peak_rss_bytes if self._sampling is not None else None
        more = {**program.used, **program.peak_rss(sampled or 0, _sampled_every_s(self.job))}
        if self._agent_lost:
            more["agent_lost"] = True
        if self._early_stop:
            more["early_stop"] = True
        if self._stream.lost:
            self._append("lost", events=self._stream.lost)
        if self._disk_full or self._stream.lost:
            more["disk_full"] = True
        self._append("end", wall=time.time(), **how, **more)
        if not self._stream.flush(_PATIENCE_S) or self._stream.lost:
            # What was measured is unknown, so it must not look like a success.
            how["detail"] = self._stream.trouble
            how["exit_code"] = None if exit_code == 0 else exit_code
            self._disk_full = self._disk_full or self._stream.is_full
        how["detail"] = how["detail"] and how["detail"][:1500]
        self._stream.close()
        self._done()
        self._speaker.say("finished", outcome={"job": self.job.id, "disk_full": self._disk_full, **how})
        # A suspended main process reads this when it continues; one that is gone is noticed.
        while not self._speaker.flush(_PATIENCE_S) and not self._speaker.main_is_gone:
            pass

    def _append(self, event: str, **values: object) -> None:
        self._stream.append(event, t=time.perf_counter_ns(), **values)


def _sampled_every_s(job: Job) -> float:
    """Nobody reads what is sampled of a hook or of a script that makes data."""
    return job.sample_interval_s if job.phase == "run" else 5.0
