"""A certificate for servers of tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


def own_certificate(folder: Path) -> Path:
    """A file with certificate and key for 127.0.0.1, signed by itself."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    path = folder / "both.pem"
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(path)]
    done = subprocess.run(
        ["openssl", "req", "-x509", "-days", "2", *key, *name], capture_output=True, text=True, check=True
    )
    path.write_text(path.read_text() + done.stdout)
    return path
