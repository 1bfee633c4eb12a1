from contextlib import contextmanager

from voir.instruments import early_stop, log


def voirfile_monitor(ov, options):
    ov.require(
        log("value", "progress", "rate", "units", "loss", "time", context="task"),
        early_stop(n=options.stop, key="rate", task="train", signal="stop"),
    )


@contextmanager
def bench_monitor(poll_interval):
    yield
