"""What a run was made on and with."""

from __future__ import annotations

import msgspec

from benchwright.core.machine import Machine
from benchwright.core.numbers.quantities import format_bytes
from benchwright.core.settings import RunSettings
from benchwright.report.base import Report
from benchwright.report.html.benchmark import pairs
from benchwright.report.html.figures import moment
from benchwright.report.html.markup import Html, element, together


def environment_section(report: Report) -> Html:
    run = report.run
    return element(
        "section",
        element("h2", "Environment"),
        element(
            "div",
            element("div", element("h3", "Machine"), pairs(_machine_rows(run.machine)), class_="card"),
            element("div", element("h3", "Run"), pairs(_run_rows(report)), class_="card"),
            class_="two",
        ),
        *(_packages(python, packages) for python, packages in run.packages.items()),
        id="environment",
    )


def _machine_rows(machine: Machine) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [
        ("Name", machine.hostname),
        ("Processor", machine.cpu),
        ("Cores", f"{machine.cores} of {machine.cores_total}"),
        ("Memory", format_bytes(machine.memory_bytes)),
        ("System", f"{machine.system} {machine.kernel}, {machine.architecture}"),
        ("Python", machine.python),
    ]
    if machine.cpu_governor:
        rows.append(("Clock governor", machine.cpu_governor))
    if machine.virtual:
        rows.append(("Runs in", machine.virtual))
    for device in machine.accelerators:
        more = [format_bytes(device.memory_bytes)] if device.memory_bytes else []
        more += [f"driver {device.driver}"] if device.driver else []
        rows.append((f"Device {device.index}", ", ".join([device.name, *more])))
    rows.append(("Fingerprint", element("code", machine.fingerprint)))
    return rows


def _run_rows(report: Report) -> list[tuple[str, object]]:
    run = report.run
    rows: list[tuple[str, object]] = [("Identifier", run.id), ("Started", moment(run.started))]
    rows.append(("Ended", moment(run.ended) if run.ended else "not finished"))
    rows.append(("Files", element("code", run.folder)))
    rows += [(f"Label {key}", value) for key, value in run.labels.items()]
    return rows + (_settings_rows(report.settings) if report.settings else [])


def _settings_rows(settings: RunSettings) -> list[tuple[str, object]]:
    names = {"sample_interval_s": "Sampled every", "grace_s": "Grace to end", "warmup_runs": "Warm-up launches"}
    units = {"sample_interval_s": " s", "grace_s": " s"}
    return [
        (names.get(key, key.replace("_", " ").capitalize()), _setting(value) + units.get(key, ""))
        for key, value in msgspec.structs.asdict(settings).items()
        if value is not None and value != () and key != "suite_paths"  # paths of a base folder, not settings
    ]


def _setting(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _packages(python: str, packages: dict[str, str]) -> Html:
    names = sorted(packages, key=str.lower)
    listed = together(element("li", name, element("span", f" {packages[name]}", class_="figure")) for name in names)
    return element(
        "details",
        element("summary", f"Packages of {python} ({len(names):,})"),
        element("ul", listed, class_="packages"),
        class_="fold",
    )
