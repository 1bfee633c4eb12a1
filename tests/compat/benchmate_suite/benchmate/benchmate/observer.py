import time

import ptera
from voir.helpers import current_overseer

from .metrics import TimedLoader, pusher


class BenchObserver:
    def __init__(self, stdout=False, earlystop=60, batch_size_fn=len, raise_stop_program=False):
        self.push, self.earlystop, self.size_of = pusher(stdout), earlystop, batch_size_fn
        self.timed = None

    def loader(self, batches):
        """Timed once: a second loader goes on with the first."""
        self.timed = self.timed or TimedLoader(batches, self.push, self.earlystop, self.size_of)
        return self.timed

    def criterion(self, criterion):
        def recorded(batch):
            loss = criterion(batch)
            self.push(loss=loss, task="train", time=time.time())
            return loss

        return recorded

    def override_return_value(self, function, override):
        probe = current_overseer.get().probe(f"{ptera.refstring(function)}() as retval", overridable=True)
        probe["retval"].override(override)
