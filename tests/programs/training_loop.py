"""A small training loop, as a stranger would write it: `python training_loop.py [steps] [seconds a step]`."""

import sys
import time

from benchprobe import give, iterate

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 100
pause_s = float(sys.argv[2]) if len(sys.argv) > 2 else 0.001

print("begin", sys.argv[0], __name__)
for i in iterate("train", range(steps), batch_size=8):
    time.sleep(pause_s)
    give(loss=1 / (i + 1))
print("end")
