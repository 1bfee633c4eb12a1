"""tqdm that does not fill the log."""

from __future__ import annotations

import os
from typing import Any

from tqdm import tqdm as plain_tqdm

from . import unknown_names

SHORTEST_S, LONGEST_S = 30.0, 60.0


class tqdm(plain_tqdm):  # type: ignore[misc]
    """At most a line in half a minute; none if $MILABENCH_NO_PROGRESS is 1."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["mininterval"] = max(SHORTEST_S, kwargs.get("mininterval", SHORTEST_S))
        kwargs["maxinterval"] = max(LONGEST_S, kwargs.get("maxinterval", LONGEST_S))
        kwargs["disable"] = kwargs.get("disable") or os.getenv("MILABENCH_NO_PROGRESS", "0") == "1"
        super().__init__(*args, **kwargs)


__getattr__ = unknown_names(__name__)
