"""Downloads from the Hugging Face hub. (The module's name is benchmate's.)"""

from __future__ import annotations

import importlib
from typing import Any

from . import unknown_names

_NOT_NEEDED = ["*.git*", "*.md", "*.txt", "*.onnx"]


def download_hf_model(
    model_id: str, token: str | None = None, cache_dir: str | None = None, ignore_patterns: list[str] | None = None
) -> None:
    hub: Any = importlib.import_module("huggingface_hub")
    options = {name: value for name, value in {"token": token, "cache_dir": cache_dir}.items() if value}
    patterns = _NOT_NEEDED if ignore_patterns is None else ignore_patterns
    print(f"{model_id}: {hub.snapshot_download(repo_id=model_id, ignore_patterns=patterns, **options)}", flush=True)


def download_hf_dataset(
    dataset_name: str, split: str | None = None, name: str | None = None, token: str | None = None
) -> bool:
    datasets: Any = importlib.import_module("datasets")
    options = {key: value for key, value in {"split": split, "token": token}.items() if value}
    found = datasets.load_dataset(dataset_name, name=name, **options)
    print(f"{dataset_name}: {found.cache_files}", flush=True)
    return True


__getattr__ = unknown_names(__name__)
