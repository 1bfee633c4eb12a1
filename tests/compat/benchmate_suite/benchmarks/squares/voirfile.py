from dataclasses import dataclass

from benchmate.monitor import voirfile_monitor
from benchmate.observer import BenchObserver
from voir import configurable
from voir.phase import StopProgram


@dataclass
class Config:
    dash: bool = False
    interval: str = "1s"
    skip: int = 5
    stop: int = 20
    gpu_poll: float = 0.05


@configurable
def instrument_main(ov, options: Config):
    yield ov.phases.init
    voirfile_monitor(ov, options)
    yield ov.phases.load_script
    from squares.work import numbers

    observer = BenchObserver(earlystop=options.stop + options.skip, batch_size_fn=len, raise_stop_program=True)
    observer.override_return_value(numbers, observer.loader)
    probe = ov.probe("//train > criterion", overridable=True)
    probe["criterion"].override(observer.criterion)
    try:
        yield ov.phases.run_script
    except StopProgram:
        print("stopped early")
