"""The version of benchwright: read from benchprobe's file, since importing benchprobe would start the probe."""

import os.path
from importlib.machinery import SourceFileLoader
from types import ModuleType

_file = os.path.join(os.path.dirname(os.path.dirname(__file__)), "benchprobe", "version.py")
_module = ModuleType("benchprobe.version")
SourceFileLoader("benchprobe.version", _file).exec_module(_module)
__version__: str = _module.__version__
