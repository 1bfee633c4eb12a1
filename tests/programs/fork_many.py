"""Forks N children, half of them in sessions of their own, which sleep; then sleeps itself.

python fork_many.py N
"""

import os
import sys
import time

for number in range(int(sys.argv[1])):
    if os.fork() == 0:
        if number % 2:
            os.setsid()
        time.sleep(300)
        os._exit(0)
print("all forked", flush=True)
time.sleep(300)
