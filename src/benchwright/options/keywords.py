"""The keywords of `benchwright.run`: the options of `benchwright run`, as Python writes them.

Made by docs/generate_keywords.py from options/table.py: change that, and run it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TypedDict

Text = str | os.PathLike[str]
Texts = str | Sequence[str]  # one, or several
Pairs = Mapping[str, object] | str | Sequence[str]  # name → value, or values; or NAME=VALUE


class RunOptions(TypedDict, total=False):
    """Durations are seconds or texts such as 90s; sizes are texts such as 8GiB."""

    # What to measure
    commands: Texts
    shell: bool
    metrics: Texts
    name: str | None
    format: str | None
    modules: Texts
    as_: str | None
    script_args: str | int | Sequence[str | int] | None
    python: Text | None
    cwd: Text | None
    env: Pairs | None
    search_dirs: Texts
    all_scripts: bool
    shard: str | int | Sequence[str | int] | None
    shuffle: bool
    params: Pairs | None
    sweep: str | None

    # How to measure it
    repeat: str | int | None
    warmup_runs: int | None
    prepare: Texts
    setup: str | None
    cleanup: str | None
    ignore_failure: bool
    interleave: bool | None
    turns: str | float | None
    stop: str | int | Sequence[str | int] | None
    stop_grace: str | float | None
    warmup: str | int | Sequence[str | int] | None
    loop: str | None
    timeout: str | float | None
    max_memory: str | int | None
    lock_clocks: str | None
    cores: str | int | Sequence[str | int] | None
    on: str | None
    nodes: int | None
    slurm: str | int | Sequence[str | int] | None
    slurm_profile: str | None
    wait: str | float | None
    platform: str | None
    device_names: Texts
    excluded_devices: Texts
    remote_dir: Text | None
    jobs: int | None
    sample_interval: str | float | None
    seed: int | None
    validations: Texts

    # Models
    runtimes: Texts
    devices: Texts
    precisions: Texts
    scale: str | None
    threads: str | int | None
    streams: str | int | None
    batch: str | int | None
    items: int | None
    max_depth: int | None
    weights: bool
    profile: bool
    cold: bool
    overlap: bool
    shapes: Pairs | None
    trust: bool
    find_timeout: str | float | None
    rebuild: str | None
    build_jobs: int | None
    lean_cache: bool
    onnx_opset: int | None
    sequence_file: Text | None
    build_only: bool
    export_only: bool
    build_timeout: str | float | None

    # Task files
    tasks: Texts
    framework: str | None
    metrics_suffix: str | None
    kvstore: str | None
    dtype: str | None
    metrics_policy: str | None
    command_to_execute: str | None
    data_set: str | None
    metrics_template: Text | None
    num_gpus: int | None
    epochs: int | None
    set_flags: Pairs | None
    remove_flags: Texts

    # Suites
    configs: Texts
    system: Text | None
    select: Texts
    exclude: Texts
    overrides: Texts
    use_current_env: bool
    no_setup: bool
    size: str | None
    capacity: str | None
    scaling: Text | None
    save_scaling: Text | None

    # Specifications
    programs: Texts
    info: str | None
    string_map: str | None
    shared_libs: Texts
    root_model_dir: Text | None
    model_cache: Text | None
    force_model_cache: bool
    offline: bool
    run_type: str | None
    regressed_types: str | int | Sequence[str | int] | None
    android_dir: Text | None

    # Endpoints
    served_model: str | None
    request_load: str | None
    request_workload: str | None
    objective: str | None
    endpoint_api: str | None
    key_from: str | None
    client_processes: int | None
    extra_body: str | None

    # Results
    labels: Pairs | None
    tags: Texts
    run_name: str | None
    keep_env: Texts
    share: bool
    discard_logs: bool
    base: Text | None
    resume: str | None
    anyway: bool
    store: str | None
    no_store: bool
    local_reporter: Text | None
    remote_reporter: str | None
    remote_access_token: str | None
