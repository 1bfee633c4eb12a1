"""Names for values of packages that may be absent, so that signatures say what they take.

To a type checker they are unknown; to a reader they are not.
"""

from __future__ import annotations

from typing import Any, Dict

Array = Any  # numpy.ndarray
Tensor = Any  # torch.Tensor
Module = Any  # torch.nn.Module
Value = Any  # any argument or result of a model
Arrays = Dict[str, Array]
Details = Dict[str, Any]  # the content of an event or a file, as JSON
Prepared = Any  # what a session's `prepare` returns
ModelInputs = Any  # `Inputs` or `Captured` for a module, arrays by name for an artifact
