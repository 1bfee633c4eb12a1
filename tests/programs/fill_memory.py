"""Needs 1 MiB for each item of a batch, and has not more than so many: python fill_memory.py BATCH LIMIT_MIB HOW

HOW: `really` runs out of memory, `says` prints what torch would, `breaks` fails for another reason.
"""

import re
import resource
import sys
from pathlib import Path

from benchprobe import iterate

batch, limit, how = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
if batch > limit and how == "says":
    sys.exit("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than there is.")
if batch > limit and how == "breaks":
    sys.exit("ValueError: the data set has fewer items")
used_kib = int(re.search(r"VmSize:\s+(\d+)", Path("/proc/self/status").read_text())[1])
resource.setrlimit(resource.RLIMIT_AS, ((used_kib << 10) + (limit << 20) + (1 << 19),) * 2)
memory = bytearray(batch << 20)
memory[::4096] = b"x" * len(memory[::4096])
for _ in iterate("train", range(20), batch_size=batch):
    sum(range(1000))
