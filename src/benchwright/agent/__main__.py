"""The node agent's entry: `python -m benchwright.agent`, or this file itself, with its orders on stdin.

    __main__.py [LEASE_S [PREFIX…]]

With a lease it ends by itself if no order comes for that long. Variables with these prefixes are removed from its environment.
"""

import os
import sys

if not __package__:  # started as a file: the package may not be on this interpreter's path
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from benchwright.agent.node import serve
from benchwright.agent.processes.fast_exit import leave

if __name__ == "__main__":
    leave(serve(sys.argv[1:]))
