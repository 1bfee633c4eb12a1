"""What the truth about each lying program is: how its launch ended, and what has to be said about it."""

from __future__ import annotations

from typing import NamedTuple

OK, FAILED = "ok", "failed"
STEPS = (5, 500)  # a second, if each waits for 2 ms: never more, and on a busy machine far fewer
LOG, LOOP, DEADLINE, JSON, KILLS = "log", "loop", "deadline", "json", "kills"


class Case(NamedTuple):
    """`reasons`: any of these. `value`: of speed, or of the rate; None: there must be none. `said`: in a note or the detail."""

    name: str
    group: str
    status: str
    reasons: tuple[str | None, ...] = (None,)
    value: tuple[float, float] | None = None  # least and most
    said: str | None = None


def exactly(value: float) -> tuple[float, float]:
    return value, value


def invalid(name: str, group: str = LOG, said: str | None = None) -> Case:
    return Case(name, group, FAILED, ("invalid",), said=said)


def no_data(name: str, group: str = LOG, said: str | None = None) -> Case:
    return Case(name, group, FAILED, ("no_data",), said=said)


def fine(name: str, said: str | None = None) -> Case:
    """It looked odd, and its number is right."""
    return Case(name, LOG, OK, value=exactly(5), said=said)


def crashed(name: str, *reasons: str, group: str = LOG, said: str | None = None) -> Case:
    return Case(name, group, FAILED, reasons or ("crashed",), said=said)


CASES = [
    invalid("prints_nan"),
    invalid("prints_inf"),
    invalid("prints_minus_inf"),
    invalid("prints_zero"),
    invalid("prints_negative"),
    invalid("prints_negative_zero"),
    invalid("prints_nan_among_numbers"),
    invalid("prints_a_number_too_large"),
    invalid("prints_a_number_too_small"),
    no_data("prints_words"),
    no_data("prints_nothing"),
    no_data("prints_the_name_only"),
    no_data("prints_european_decimals"),
    Case("prints_thousands_separators", LOG, OK, value=exactly(1234.5)),
    no_data("prints_hexadecimal"),
    Case("prints_with_a_unit", LOG, OK, value=exactly(5000)),
    no_data("prints_the_infinity_sign"),
    no_data("prints_a_fraction"),
    no_data("prints_a_percentage"),
    no_data("prints_a_list"),
    Case("prints_arabic_digits", LOG, OK, value=exactly(123)),
    Case("prints_thousands_apart", LOG, OK, value=exactly(1)),  # what the pattern asks for: the first word
    fine("prints_to_stderr"),
    fine("prints_without_a_newline"),
    fine("prints_half_lines"),
    fine("prints_colours"),
    Case("prints_carriage_returns", LOG, OK, value=(4, 5)),
    fine("prints_invalid_utf8"),
    fine("prints_nuls"),
    no_data("prints_utf16"),
    fine("prints_a_very_long_line"),
    Case("prints_the_number_behind_a_very_long_line", LOG, FAILED, ("no_data",)),
    fine("prints_many_lines"),
    fine("prints_the_number_very_often"),
    crashed("prints_control_characters"),
    fine("prints_our_own_words"),
    fine("hides_lines_in_the_output"),
    crashed("prints_then_exits_1", said="exit code 1"),
    crashed("prints_then_raises", said="exit code 1"),
    crashed("prints_then_aborts", "signalled", said="SIGABRT"),
    crashed("prints_then_kills_itself", "signalled", "out_of_memory", said="SIGKILL"),
    crashed("prints_then_terminates_itself", "signalled", said="SIGTERM"),
    crashed("prints_then_breaks_memory", "signalled", said="SIGSEGV"),
    crashed("prints_then_exits_255", said="exit code 255"),
    crashed("exits_with_a_text", said="exit code 1"),
    no_data("exits_256_which_is_0"),
    fine("raises_at_exit"),
    fine("raises_in_a_thread"),
    no_data("closes_stdout"),
    no_data("closes_everything"),
    crashed("replaces_stdout", said="exit code 120"),  # what Python says of output that it cannot write
    fine("becomes_another_program"),
    fine("changes_its_folder_and_removes_it"),
    fine("limits_its_files"),
    fine("limits_its_descriptors"),
    crashed("runs_out_of_memory", "out_of_memory", "crashed"),
    no_data("forks_and_exits"),
    fine("prints_after_its_end", said="came from a process that outlived the program"),
    fine("daemonises_and_prints", said="still running"),
    fine("leaves_a_sleeper", said="still running"),
    fine("leaves_a_stubborn_sleeper", said="with SIGKILL"),
    fine("leaves_many_children", said="still running"),
    fine("leaves_a_chain_of_children", said="still running"),
    fine("eats_memory_and_is_done"),
    # Whom they attack.
    crashed("kills_its_group", "signalled", group=KILLS),
    crashed("kills_its_parent", "agent_lost", group=KILLS),
    Case("terminates_its_parent", KILLS, "interrupted", ("stopped",)),  # exit code 1, and a resume repeats it
    Case("stops_its_parent", KILLS, OK, value=exactly(5)),
    crashed("kills_the_group_of_its_parent", "agent_lost", group=KILLS),
    crashed("spoofs_a_good_end", group=KILLS, said="exit code 1"),
    invalid("spoofs_a_numbered_end", KILLS, said="claim to be the agent's"),
    invalid("spoofs_a_metric", KILLS, said="claim to be the agent's"),
    invalid("spoofs_samples", KILLS, said="claim to be the agent's"),
    invalid("spoofs_a_message", KILLS, said="claim to be the agent's"),
    invalid("truncates_its_stream", KILLS, said="missing from its stream"),
    Case("removes_its_stream", KILLS, FAILED, ("agent_lost", "invalid")),
    Case("replaces_its_stream", KILLS, FAILED, ("agent_lost", "invalid", "no_data")),
    Case("writes_rubbish_to_its_stream", KILLS, OK, value=exactly(5), said="unreadable"),
    Case("writes_a_huge_line_to_its_stream", KILLS, OK, value=exactly(5), said="unreadable"),
    Case("removes_its_log", KILLS, OK, value=exactly(5), said="log"),
    Case("truncates_its_log", KILLS, OK, value=exactly(6)),
    Case("rewrites_run_json", KILLS, OK, value=exactly(5)),
    Case("rewrites_the_plan", KILLS, OK, value=exactly(5), said="they were restored"),
    Case("changes_benchprobe", KILLS, OK, value=exactly(5), said="benchprobe's own files were changed"),
    # Loops: the value is the rate.
    Case("has_no_step", LOOP, FAILED, ("no_data", "invalid")),
    Case("is_left_at_once", LOOP, FAILED, ("no_data", "invalid")),
    Case("is_left_by_break", LOOP, OK, value=STEPS, said="ended after 17 of the 30 steps"),
    crashed("is_left_by_an_exception", group=LOOP),
    Case("is_left_by_exit_0", LOOP, OK, value=STEPS, said="of the 30 steps"),
    Case("is_left_by_os_exit", LOOP, FAILED, ("no_data", "invalid")),
    Case("is_never_left", LOOP, OK, value=STEPS),
    invalid("has_a_batch_size_of_0", LOOP),
    Case("has_a_negative_batch_size", LOOP, OK, value=STEPS, said="cannot be a number of items"),
    Case("has_a_batch_size_that_is_no_number", LOOP, OK, value=STEPS, said="batch"),
    Case("has_a_batch_size_of_nan", LOOP, OK, value=STEPS, said="batch"),
    Case("has_a_huge_batch_size", LOOP, OK, value=STEPS, said="cannot be a number of items"),
    Case("lies_about_its_length", LOOP, OK, value=STEPS, said="of the 30 steps"),
    Case("cannot_tell_its_length", LOOP, OK, value=STEPS),
    crashed("has_data_that_fail", group=LOOP),
    invalid("gives_a_nan_loss", LOOP, said="loss"),
    Case("gives_a_rate", LOOP, OK, value=STEPS, said="rate"),
    Case("gives_a_step_time", LOOP, OK, value=STEPS, said="step_time"),
    Case("gives_a_huge_number", LOOP, OK, value=STEPS),
    Case("gives_words", LOOP, OK, value=STEPS, said="give"),
    Case("gives_an_odd_name", LOOP, OK, value=STEPS),
    Case("gives_very_many_names", LOOP, OK, value=(5, 1000)),
    Case("puts_epochs_around_train", LOOP, OK, value=(40, 4000)),
    Case("is_sane_before_it_trains", LOOP, OK, value=(40, 4000)),
    Case("comes_in_bursts", LOOP, OK, value=(8, 180)),
    Case("waits_for_data", LOOP, OK, value=(2, 50)),
    Case("slows_the_clock", LOOP, FAILED, ("invalid",)),
    Case("turns_the_clock_back", LOOP, FAILED, ("invalid",)),
    Case("sets_the_wall_clock_back", LOOP, OK, value=STEPS),
    Case("breaks_json", LOOP, OK, said="no loop is instrumented"),  # it cannot say anything
    Case("breaks_os_write", LOOP, OK, value=STEPS),
    Case("closes_our_descriptors", LOOP, OK, value=STEPS),
    Case("takes_our_descriptors", LOOP, OK, value=STEPS),
    Case("forgets_its_configuration", LOOP, OK, said="no loop is instrumented"),
    Case("changes_its_configuration", LOOP, OK, said="no loop is instrumented"),
    Case("clears_the_environment", LOOP, OK, value=STEPS),
    Case("claims_another_rank", LOOP, OK, value=STEPS),
    invalid("has_two_of_one_rank", LOOP, said="rank 0 began loop 'train' and never finished it"),
    invalid("loses_a_rank", LOOP, said="rank 1 began loop 'train' and never finished it"),
    Case("forks_in_its_loop", LOOP, OK, value=(5, 1000)),
    Case("loops_in_threads", LOOP, OK, value=STEPS),
    Case("spoofs_steps", LOOP, FAILED, ("invalid",)),
    Case("is_stopped_for_a_while", LOOP, OK, value=(0.1, 250), said="stopped"),
    Case("fails_in_close", LOOP, OK, value=STEPS),  # as plain Python ignores it
    Case("recurses_deeply", LOOP, OK, value=STEPS),
    # Deadlines.
    *(
        Case(name, DEADLINE, FAILED, ("timed_out",), said="it ran longer than 1 s")
        for name in (
            *("runs_for_ever", "computes_for_ever", "ignores_sigterm", "exits_0_on_sigterm", "forks_on_sigterm"),
            *("stops_itself", "leaves_its_session_and_runs_for_ever", "prints_for_ever"),
        )
    ),
    # JSON lines.
    invalid("says_json_nan", JSON),
    Case("says_json_infinity", JSON, FAILED, ("no_data", "invalid")),
    no_data("says_json_true", JSON),
    no_data("says_json_text", JSON),
    no_data("says_json_null", JSON),
    Case("says_json_nested", JSON, OK, value=exactly(5)),
    Case("says_json_twice", JSON, OK, value=(5, 7)),
    no_data("says_json_cut_off", JSON),
]

# Tried on every change: of each kind of lie a cheap one.
QUICK = {
    *(
        "prints_nan",
        "prints_words",
        "prints_to_stderr",
        "prints_then_exits_1",
        "prints_after_its_end",
        "leaves_a_sleeper",
    ),
    *("spoofs_a_metric", "truncates_its_stream"),
    *("gives_a_nan_loss", "is_left_by_break", "has_two_of_one_rank", "loses_a_rank"),
}
