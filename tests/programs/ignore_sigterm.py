"""Does not end when asked to."""

import signal
import time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(300)
