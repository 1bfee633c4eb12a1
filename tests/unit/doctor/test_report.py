from __future__ import annotations

import json
import re

import builders
import pytest

from benchwright.core.checkup import Checkup, Noise
from benchwright.core.health import CpuHealth, DiskHealth, Health, MemoryHealth
from benchwright.core.note import Note
from benchwright.core.summary import Interval
from benchwright.doctor.report import checkup_json, checkup_text

MACHINE = builders.machine(
    hostname="node", cpu="A processor with a rather long name @ 2.40GHz", cores=4, cores_total=8, memory_bytes=16 << 30
)
HEALTH = Health(cpu=CpuHealth(load_1m=2.0), memory=MemoryHealth(), disk=DiskHealth(folder="/results"))
FINE = Note(kind="cpu.governor", severity="ok", text="performance on every core")
LOADED = Note(
    kind="cpu.load",
    severity="warning",
    text="30 % busy with other things, load 2.0 on 8 cores",
    remedy="stop them " * 12,
)
BAD = Note(kind="disk.free", severity="error", text="12 B in /results", remedy="make room")
SILENT = Note(kind="cpu.turbo", severity="unknown", text="not reported by the system")
NOISE = Noise(
    metric="process.duration",
    median_s=0.15,
    launches=12,
    pairs=((0.15, 0.15),) * 6,
    ratio=1.01,
    interval=Interval(0.99, 1.03),
    floor=0.02,
    spread=0.01,
    detectable={6: 0.04, 12: 0.03, 20: 0.02},
)


def text_of(*notes: Note, **options: object) -> str:
    return checkup_text(Checkup(machine=MACHINE, health=HEALTH, notes=notes, noise=(NOISE,)), **options)


def test_each_note_has_a_line_with_its_sign_and_the_remedy_is_below_it():
    lines = text_of(FINE, LOADED, BAD).splitlines()
    assert "   ✓ governor    performance on every core" in lines
    (at,) = [n for n, line in enumerate(lines) if line.startswith("   ⚠ load ")]
    assert lines[at + 1].strip().startswith("→ stop them")


@pytest.mark.parametrize("width", [60, 80, 110])
def test_no_line_is_wider_than_the_screen_with_or_without_colours(width):
    for colour in (False, True):
        text = text_of(FINE, LOADED, BAD, SILENT, width=width, colour=colour)
        assert max(len(re.sub(r"\x1b\[\d+m", "", line)) for line in text.splitlines()) <= width


def test_colours_change_nothing_but_colours():
    coloured = text_of(FINE, LOADED, BAD, SILENT, colour=True)
    assert "\x1b[31m✗\x1b[0m" in coloured
    assert re.sub(r"\x1b\[\d+m", "", coloured) == text_of(FINE, LOADED, BAD, SILENT)


def test_the_verdict_says_what_cannot_be_trusted():
    assert "ready to measure" in text_of(FINE)
    assert "1 warning: measure with care" in text_of(FINE, LOADED)
    last = text_of(FINE, LOADED, BAD).splitlines()[-1]
    assert last == " ✗ measurements taken now cannot be trusted (disk: free); 1 warning"


def test_what_the_system_does_not_tell_is_listed_once():
    text = text_of(FINE, SILENT)
    assert "not available on this system: turbo" in text
    assert text.count("turbo") == 1


def test_what_is_fine_about_a_gpu_takes_one_line():
    words = ("no one else uses it", "35 °C", "no memory errors")
    fine = [Note(kind=f"gpu.{g}.{n}", severity="ok", text=t) for g in "01" for n, t in enumerate(words)]
    hot = Note(kind="gpu.0.clock", severity="error", text="held down", remedy="cool it")
    text = text_of(*fine, hot)
    assert "   ✓ GPU 0       no one else uses it; 35 °C; no memory errors" in text
    assert text.count("✓") == 2
    assert "✗ GPU 0 clock held down" in text


def test_json_has_everything():
    body = json.loads(checkup_json(Checkup(machine=MACHINE, health=HEALTH, notes=(FINE, LOADED, BAD), noise=(NOISE,))))
    assert (body["version"], body["verdict"], body["errors"]) == (2, "error", ["disk.free"])
    assert [note["severity"] for note in body["notes"]] == ["ok", "warning", "error"]
    assert body["health"]["cpu"]["load_1m"] == 2.0
    assert body["noise"][0]["detectable"] == {"6": 0.04, "12": 0.03, "20": 0.02}
    assert body["machine"]["fingerprint"] == MACHINE.fingerprint
