import json
import sys
import time

from voir.helpers import current_overseer
from voir.phase import StopProgram
from voir.smuggle import SmuggleWriter


def pusher(stdout):
    """To voir, or hidden in the output of a process that voir does not run."""
    if not stdout:
        return current_overseer.get().give
    file = SmuggleWriter(sys.stdout)
    return lambda **metric: print(json.dumps(metric), file=file, flush=True)


class TimedLoader:
    """Gives the rate of each body of the loop; StopProgram after `earlystop` of them."""

    def __init__(self, batches, push, earlystop, batch_size_fn):
        self.batches, self.push, self.earlystop, self.size_of = batches, push, earlystop, batch_size_fn
        self.count = 0

    def __iter__(self):
        self.push(progress=(self.count, self.earlystop), task="early_stop")
        for batch in self.batches:
            began = time.perf_counter()
            yield batch
            rate = self.size_of(batch) / (time.perf_counter() - began)
            self.push(rate=rate, units="items/s", task="train", time=time.time())
            self.count += 1
            if self.count == self.earlystop:
                raise StopProgram()
