"""Which devices `--platform`, `--devices` and `--excluded-devices` mean: one order for each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence

import msgspec

from benchwright.core.errors import CannotMeasure, InvalidInput, did_you_mean
from benchwright.core.system import System
from benchwright.options.table import Options
from benchwright.runner.devices import ANDROID, HOST, SSH, Lab, LabDevice, known_system, look_around
from benchwright.runner.run import RunOrder

# What a platform's name begins with → the devices it means. What follows a slash names a build.
_PLATFORMS = {"host": HOST, "linux": HOST, "mac": HOST, "android": ANDROID}


class DeviceOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A run to make on one device. `name`: of the device, in messages."""

    name: str
    order: RunOrder
    is_here: bool = False  # on this machine, which must do nothing else meanwhile


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """`notes`: devices that were left out, and why."""

    orders: tuple[DeviceOrder, ...]
    notes: tuple[str, ...] = ()


def orders_for_devices(order: RunOrder) -> Chosen:
    """One order for each device that the options mean; the order itself if they say nothing about devices."""
    options = order.options
    if not options.names_devices:
        return Chosen(orders=(DeviceOrder(name="", order=order),))
    kinds = _kinds_of(options)
    system = known_system(options.system, os.environ) if SSH in kinds else System()
    lab = look_around(system, str(order.base.path), kinds=kinds, on_phones=options.android_dir)
    wanted, notes = _wanted(lab, options)
    same = Counter(device.name for device in wanted)
    orders = [_ordered(order, device, alone=same[device.name] == 1) for device in wanted]
    if order.resume is not None and len(orders) > 1:
        names = ", ".join(each.name for each in orders)
        raise InvalidInput(
            f"one run is resumed at a time, and {names} match", where="--resume", remedy="name one with --devices"
        )
    return Chosen(orders=tuple(orders), notes=tuple(notes))


def order_for_device(order: RunOrder) -> RunOrder:
    """For callers that make one run; InvalidInput if several devices match."""
    chosen = orders_for_devices(order).orders
    if len(chosen) > 1:
        names = ", ".join(each.name for each in chosen)
        raise InvalidInput(f"several devices match: {names}", where="--devices", remedy="name one of them")
    return chosen[0].order


def _kinds_of(options: Options) -> tuple[str, ...]:
    if options.on is not None:
        raise InvalidInput(
            "--on names where to run, and so do --platform and --devices", where="--on", remedy="drop one of them"
        )
    if options.platform is None:
        return (HOST, SSH, ANDROID) if options.device_names else (HOST, ANDROID)  # a node is meant only by its name
    for beginning, kind in _PLATFORMS.items():
        if options.platform.lower().startswith(beginning):
            return (kind,)
    near = did_you_mean(options.platform, _PLATFORMS)
    raise InvalidInput(
        f"'{options.platform}' is no platform", where="--platform", remedy=near or f"use {', '.join(_PLATFORMS)}"
    )


def _wanted(lab: Lab, options: Options) -> tuple[list[LabDevice], list[str]]:
    """Matching devices, and notes about others."""
    if lab.problem is not None and (options.platform is not None or not _all_known(lab, options.device_names)):
        raise CannotMeasure(lab.problem)
    _check_names(lab, options.device_names)
    named = [d for d in lab.devices if not options.device_names or _is_one_of(d, options.device_names)]
    kept = [d for d in named if not _is_one_of(d, options.excluded_devices)]
    for device in kept:
        if not device.is_ready and options.device_names:
            raise CannotMeasure(f"device '{device.hash}' is {device.state}: {device.remedy}")
    ready = [device for device in kept if device.is_ready]
    notes = [f"device '{d.hash}' is left out, since it is {d.state}: {d.remedy}" for d in kept if not d.is_ready]
    if not ready:
        why = notes or ["no Android device is attached; plug one in, allow USB debugging on it, and check: adb devices"]
        raise CannotMeasure("; ".join(why if not named or notes else ["--excluded-devices excludes every device"]))
    return ready, notes


def _all_known(lab: Lab, names: Sequence[str]) -> bool:
    return bool(names) and all(any(_is_one_of(device, [name]) for device in lab.devices) for name in names)


def _check_names(lab: Lab, names: Sequence[str]) -> None:
    known = [word for device in lab.devices for word in (device.name, device.hash) if word]
    for name in names:
        if name not in known:
            remedy = did_you_mean(name, known) or "list them with: benchwright devices"
            raise InvalidInput(f"there is no device '{name}' here", where="--devices", remedy=remedy)


def _is_one_of(device: LabDevice, names: Sequence[str]) -> bool:
    return device.hash in names or (device.name is not None and device.name in names)


def _ordered(order: RunOrder, device: LabDevice, *, alone: bool) -> DeviceOrder:
    """Devices of one name stand in for each other if one is lost."""
    on = device.on if alone or device.kind != ANDROID else f"{device.on}+{device.name}"
    options = msgspec.structs.replace(order.options, on=on, platform=None, device_names=(), excluded_devices=())
    labels = {"platform": order.options.platform} if order.options.platform else {}
    return DeviceOrder(
        name=device.hash,
        order=msgspec.structs.replace(order, options=options, labels=order.labels | labels),
        is_here=device.kind == HOST,
    )
