"""Leaves a daemon behind (double fork, new session, no descriptors), then ends, or stays if told to.

python daemonise.py PID_FILE [stay]
"""

import os
import sys
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 100)
        with open(sys.argv[1] + ".part", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".part", sys.argv[1])
        time.sleep(300)
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]):
    time.sleep(0.005)
print("the daemon runs", flush=True)
if sys.argv[2:] == ["stay"]:
    time.sleep(300)
