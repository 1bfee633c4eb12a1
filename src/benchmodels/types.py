"""Names for values of packages that may be absent, so that signatures say what they take.

To a type checker they are unknown; to a reader they are not.
"""

from __future__ import annotations

from typing import Any, Dict

Array = Any  # numpy.ndarray
Tensor = Any  # torch.Tensor
Module = Any  # torch.nn.Module
Value = Any  # whatever a script passes to its model, or gets from it
Arrays = Dict[str, Array]
Details = Dict[str, Any]  # what an event or a file says, as JSON holds it
Prepared = Any  # what a session's `prepare` returns: its own business
ModelInputs = Any  # `Inputs` or `Captured` for a module, arrays by name for an artifact
