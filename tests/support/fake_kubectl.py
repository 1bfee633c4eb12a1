"""A stand-in for programs such as `kubectl exec`: runs the words after `--` here, and fails in ways of its own on request.

    python fake_kubectl.py exec -i POD -- COMMAND…

The pod `gone` does not exist; the connection to the pod `cut` ends after its first output. kubectl itself needs a cluster.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys


def main(words: list[str]) -> int:
    pod, command = words[words.index("-i") + 1], words[words.index("--") + 1 :]
    if pod == "gone":
        print(f'Error from server (NotFound): pods "{pod}" not found', file=sys.stderr)
        return 1
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "POD": pod}
    if pod == "cut":
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, start_new_session=True)
        assert process.stdout is not None
        process.stdout.read(1)
        os.killpg(process.pid, signal.SIGKILL)
        print("error: lost connection to pod", file=sys.stderr)
        return 1
    code = subprocess.run(command, env=environment, check=False).returncode
    if code:  # as kubectl does
        print(f"command terminated with exit code {code}", file=sys.stderr)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
