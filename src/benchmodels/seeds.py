"""The same random numbers in every run of a script: each generator is seeded as soon as the script imports it."""

from __future__ import annotations

from typing import Any

from benchmodels.hooks.imports import ImportWatch


def seed_on_import(imports: ImportWatch, seed: int) -> None:
    """A script that seeds them itself does so later, and has its way."""

    def seed_numpy(random: Any) -> None:
        random.seed(seed % (1 << 32))

    imports.after("random", lambda random: random.seed(seed))
    imports.after("numpy.random", seed_numpy)
    imports.after("torch", lambda torch: torch.manual_seed(seed))
