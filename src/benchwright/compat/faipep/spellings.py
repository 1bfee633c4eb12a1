"""Options of FAI-PEP's harness and repo driver, as they are called here."""

from __future__ import annotations

_MEASURING = ("run", "plan", "ab", "bisect", "watch", "export")
_UNDERSCORED = (
    "--string_map --shared_libs --root_model_dir --model_cache --force_model_cache --run_type --regressed_types --android_dir "
    "--excluded_devices --local_reporter --remote_reporter --remote_access_token"
).split()
_OTHERS: dict[str, tuple[str, ...]] = {
    "--backend": ("--runtime",),
    "--benchmark-file": ("--config",),
    "--screen-reporter": (),  # the report is always shown
}


class FaiPepSpellings:
    """Of the repo driver, which is `watch` here, every underscore is as good as a dash."""

    def spelt(self, command: str, flag: str) -> tuple[str, ...] | None:
        if command not in _MEASURING or not flag.startswith("--"):
            return None
        dashed = flag.replace("_", "-")
        if dashed in _OTHERS:
            return _OTHERS[dashed]
        return (dashed,) if flag in _UNDERSCORED or (command == "watch" and dashed != flag) else None
