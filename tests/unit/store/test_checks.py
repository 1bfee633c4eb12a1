"""Checks are kept with a run, and runs from before there were any are still read."""

from __future__ import annotations

import json
import zlib

import msgspec
from suite_runs import on_devices, run

from benchwright.core.run import Check, CheckStatus
from benchwright.store.run_document import ENCODING, RunSamples, measurements_of, pack_document, unpack_document

CHECKED = msgspec.structs.replace(
    on_devices("a", (5.0,)),
    checks=(Check(layer="loss", status=CheckStatus.WARNED, explanation="é"),),
)


def samples_of(whole: object) -> dict[tuple[int, int, int], RunSamples]:
    return {place: RunSamples(m.warmup_samples, m.samples) for place, _, m in measurements_of(whole)}  # type: ignore[arg-type]


def test_a_stored_run_has_its_checks_again() -> None:
    whole = run(CHECKED)
    assert unpack_document(pack_document(whole), ENCODING, samples_of(whole)) == whole


def test_a_run_without_checks_is_read() -> None:
    whole = run(CHECKED)
    body = json.loads(zlib.decompress(pack_document(whole)))
    for result in body["results"]:
        del result["checks"]
    old = zlib.compress(json.dumps(body).encode())
    assert unpack_document(old, ENCODING, samples_of(whole)).results[0].checks == ()
