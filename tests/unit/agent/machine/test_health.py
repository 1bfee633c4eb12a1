"""The node is read from trees that look like /proc and /sys of machines we do not have."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchwright.agent.machine import health
from benchwright.agent.machine.health import read_gpu, read_gpus, read_health
from benchwright.core.health import Health

Machine = Callable[[dict[str, str]], Health]
CPU = "sys/devices/system/cpu"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Reads a machine that has exactly these files."""

    def read(files: dict[str, str]) -> Health:
        for name, text in files.items():
            path = tmp_path / "root" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return read_health(str(tmp_path / "results"), root=str(tmp_path / "root"), sleep=lambda _: None)

    return read


def test_a_machine_that_tells_nothing_is_unknown_and_no_error(machine):
    found = machine({})
    assert found.cpu.governors == {}
    told = [getattr(found.cpu, name) for name in found.cpu.__struct_fields__ if name != "governors"]
    assert told == [None] * len(told)
    assert found.memory.total_bytes is found.memory.available_bytes is found.memory.swap_used_bytes is None
    assert found.zones == ()
    assert found.on_battery is found.open_files_limit is None


def test_governors_are_counted_over_cores(machine):
    found = machine(
        {f"{CPU}/cpu{n}/cpufreq/scaling_governor": "powersave\n" if n else "performance\n" for n in range(12)}
        | {f"{CPU}/cpufreq/policy0/scaling_governor": "ondemand"}
    )
    assert found.cpu.governors == {"performance": 1, "powersave": 11}


@pytest.mark.parametrize(
    ("name", "text", "turbo"),
    [
        ("intel_pstate/no_turbo", "0", True),
        ("intel_pstate/no_turbo", "1", False),
        ("cpufreq/boost", "1", True),
        ("cpufreq/boost", "0", False),
        ("cpufreq/boost", "?", None),
    ],
)
def test_turbo_by_either_driver(machine, name, text, turbo):
    assert machine({f"{CPU}/{name}": text}).cpu.turbo is turbo


def test_smt_by_the_switch_or_by_the_siblings(machine):
    assert machine({f"{CPU}/cpu0/topology/thread_siblings_list": "0,4\n"}).cpu.smt is True
    assert machine({f"{CPU}/smt/active": "0\n"}).cpu.smt is False


def test_busy_and_stolen_time_are_shares_of_what_passed_meanwhile(tmp_path):
    stat = tmp_path / "proc" / "stat"
    stat.parent.mkdir()
    stat.write_text("cpu  1000 0 0 9000 0 0 0 0 500 0\ncpu0 …\n")
    found = read_health(
        str(tmp_path),
        root=str(tmp_path),
        sleep=lambda _: stat.write_text("cpu  1030 0 0 9050 10 0 0 10 530 0\n") and None,
    )
    assert found.cpu.busy_percent == pytest.approx(40)
    assert found.cpu.steal_percent == pytest.approx(10)


def test_pressure_load_clock_and_limits(machine):
    found = machine(
        {
            "proc/pressure/cpu": "some avg10=26.85 avg60=1.00 avg300=0.00 total=1\n",
            "proc/pressure/memory": "some avg10=3.00 avg60=0 avg300=0 total=1\nfull avg10=1.50 avg60=0 avg300=0 total=1\n",
            "proc/loadavg": "4.41 3.30 2.11 4/138 7752\n",
            "proc/self/limits": "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                524288               files\n",
            "sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet\n",
        }
    )
    assert found.cpu.pressure is not None
    assert (found.cpu.pressure.some_percent, found.cpu.pressure.full_percent) == (26.85, None)
    assert found.memory.pressure is not None
    assert found.memory.pressure.full_percent == 1.5
    assert (found.cpu.load_1m, found.cpu.clock_source, found.open_files_limit) == (4.41, "hpet", 1024)


MEMINFO = {
    "proc/meminfo": "MemTotal:  16000000 kB\nMemFree: 100 kB\nMemAvailable:  8000000 kB\nSwapTotal: 2000 kB\nSwapFree: 500 kB\n"
}


def test_memory_of_the_machine(machine):
    memory = machine(MEMINFO).memory
    assert (memory.total_bytes, memory.available_bytes) == (16_384_000_000, 8_192_000_000)
    assert (memory.swap_total_bytes, memory.swap_used_bytes) == (2_048_000, 1_536_000)
    assert memory.limit_bytes is None


@pytest.mark.parametrize(
    "files",
    [
        {
            "proc/self/cgroup": "0::/job/inner\n",
            "sys/fs/cgroup/job/memory.max": "4000000000\n",
            "sys/fs/cgroup/job/memory.current": "3000000000\n",
            "sys/fs/cgroup/job/memory.stat": "anon 1\ninactive_file 500000000\n",
            "sys/fs/cgroup/job/inner/memory.max": "max\n",
            "sys/fs/cgroup/job/inner/memory.current": "1\n",
            "sys/fs/cgroup/job/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/job/inner/cpu.max": "max 100000\n",
            "sys/fs/cgroup/job/cpu.stat": "usage_usec 5\nnr_periods 200\nnr_throttled 50\n",
        },
        {
            "proc/self/cgroup": "9:name=systemd:/\n4:memory:/job\n1:cpu,cpuacct:/job\n0::/\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "4000000000\n",
            "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "3000000000\n",
            "sys/fs/cgroup/memory/job/memory.stat": "total_inactive_file 500000000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/memory/memory.usage_in_bytes": "1\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us": "150000\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/job/cpu.stat": "nr_periods 200\nnr_throttled 50\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        },
    ],
    ids=["second version", "first version"],
)
def test_the_strictest_control_group_counts(machine, files):
    found = machine(MEMINFO | files)
    assert found.memory.limit_bytes == 4_000_000_000
    assert found.memory.available_bytes == 1_500_000_000
    assert found.cpu.quota_cores == 1.5
    assert found.cpu.throttled_percent == 25


def test_a_limit_above_the_machine_is_none(machine):
    files = {
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/memory.max": "99999999999999\n",
        "sys/fs/cgroup/memory.current": "1\n",
    }
    assert machine(MEMINFO | files).memory.limit_bytes is None


def test_zones_with_the_lowest_point_that_slows_the_machine(machine):
    zone = "sys/class/thermal/thermal_zone0"
    found = machine(
        {
            f"{zone}/type": "x86_pkg_temp\n",
            f"{zone}/temp": "67500\n",
            f"{zone}/trip_point_0_type": "active\n",
            f"{zone}/trip_point_0_temp": "50000\n",
            f"{zone}/trip_point_1_type": "critical\n",
            f"{zone}/trip_point_1_temp": "105000\n",
            f"{zone}/trip_point_2_type": "passive\n",
            f"{zone}/trip_point_2_temp": "95000\n",
            "sys/class/thermal/thermal_zone1/temp": "-274000\n",
            "sys/class/thermal/cooling_device0/temp": "99000\n",
        }
    )
    assert [(z.name, z.temperature_c, z.throttles_at_c) for z in found.zones] == [("x86_pkg_temp", 67.5, 95.0)]


def test_throttled_cores_and_a_battery(machine):
    found = machine(
        {f"{CPU}/cpu{n}/thermal_throttle/core_throttle_count": "3\n" for n in range(2)}
        | {"sys/class/power_supply/AC/type": "Mains\n", "sys/class/power_supply/AC/online": "0\n"}
    )
    assert found.cpu.throttle_events == 6
    assert found.on_battery is True


MOUNTS = r"""1 0 0:1 / / rw - ext4 /dev/vda rw
2 1 0:2 / /data rw shared:1 - nfs4 server:/x rw
3 2 0:3 / /data/a\040b rw - tmpfs tmpfs rw
4 1 0:4 / /data2 rw - xfs /dev/vdb rw
broken line
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/home", "ext4"), ("/data/x", "nfs4"), ("/data/a b/c", "tmpfs"), ("/data2/x", "xfs"), ("/data", "nfs4")],
)
def test_the_file_system_is_that_of_the_deepest_mount_point(tmp_path, path, kind):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text(MOUNTS)
    assert health.read_file_system_kind(path, str(tmp_path)) == kind


def test_a_folder_that_is_not_there_yet_is_read_as_the_one_above(tmp_path):
    disk = health.read_disk(str(tmp_path / "not" / "yet"))
    assert disk.free_bytes is not None
    assert 0 < disk.free_bytes <= (disk.total_bytes or 0)
    assert disk.writable is True


def test_a_file_where_a_folder_should_be_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    assert health.read_disk(str(tmp_path / "file" / "base")).writable is False


@pytest.mark.parametrize("seed", range(30))
def test_rubbish_in_any_file_is_no_error(tmp_path, seed):
    rng = random.Random(seed)
    names = [
        *("proc/stat", "proc/loadavg", "proc/meminfo", "proc/self/cgroup", "proc/self/mountinfo", "proc/self/limits"),
        *(f"proc/pressure/{what}" for what in ("cpu", "memory", "io")),
        *(f"{CPU}/{name}" for name in ("smt/active", "cpufreq/boost", "cpu0/cpufreq/scaling_governor")),
        *("sys/fs/cgroup/cpu.max", "sys/fs/cgroup/cpu.stat", "sys/fs/cgroup/memory.max"),
        *("sys/class/thermal/thermal_zone0/temp", "sys/class/thermal/thermal_zone0/trip_point_0_type"),
    ]
    words = [
        "cpu",
        "some",
        "avg10=",
        "0::/",
        "MemTotal:",
        "kB",
        "-1",
        "1e9",
        "\0",
        "·",
        " - ",
        "\n",
        "99999",
        "²",
        "max",
    ]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(rng.choice(["", " "]).join(rng.choices(words, k=rng.randrange(30))))
    found = read_health("/", root=str(tmp_path), sleep=lambda _: None)
    assert isinstance(found, Health)
    assert found.cpu.load_1m is None or math.isfinite(found.cpu.load_1m)


def test_this_machine_can_be_read():
    found = read_health(os.getcwd(), watch_s=0.05)
    if os.uname().sysname == "Linux":
        assert found.memory.available_bytes
        assert found.cpu.load_1m is not None
        assert found.open_files_limit


class _NvmlError(Exception):
    pass


def _nvml(**answers: object) -> SimpleNamespace:
    """NVML as far as it is asked here; what is not named is not supported."""

    def refuse(*_: object) -> None:
        raise _NvmlError("not supported")

    names = (
        "MemoryInfo PowerManagementLimit PowerManagementDefaultLimit Name PersistenceMode ComputeRunningProcesses "
        "GraphicsRunningProcesses UtilizationRates TotalEccErrors Temperature TemperatureThreshold "
        "CurrentClocksEventReasons HandleByIndex"
    ).split()
    functions = {f"nvmlDeviceGet{name}": refuse for name in names}
    functions |= {f"nvmlDeviceGet{name}": lambda *_, value=value: value for name, value in answers.items()}
    return SimpleNamespace(
        NVMLError=_NvmlError,
        NVML_MEMORY_ERROR_TYPE_UNCORRECTED=1,
        NVML_VOLATILE_ECC=0,
        NVML_TEMPERATURE_GPU=0,
        nvmlDeviceGetCount=lambda: 1,
        nvmlShutdown=lambda: None,
        **functions,
    )


def test_a_gpu_that_tells_nothing_is_unknown():
    found = read_gpu(_nvml(), 0, object())
    told = [getattr(found, name) for name in found.__struct_fields__ if name not in ("index", "name")]
    assert told == [None] * len(told)


def test_a_gpu_with_trouble_tells_it():
    nvml = _nvml(
        Name=b"NVIDIA H200",
        PersistenceMode=0,
        ComputeRunningProcesses=[SimpleNamespace(pid=7), SimpleNamespace(pid=3)],
        GraphicsRunningProcesses=[SimpleNamespace(pid=7)],
        TotalEccErrors=2,
        CurrentClocksEventReasons=0x1 | 0x4 | 0x40,
        PowerManagementLimit=500_000,
        PowerManagementDefaultLimit=700_000,
        Temperature=88,
    )
    found = read_gpu(nvml, 0, object())
    assert (found.name, found.persistent, found.processes) == ("NVIDIA H200", False, (3, 7))
    assert found.throttle_reasons == ("software power cap", "hardware thermal slowdown")
    assert (found.power_limit_w, found.power_default_w) == (500, 700)
    assert (found.uncorrected_errors, found.temperature_c, found.throttles_at_c) == (2, 88, None)


def test_a_driver_that_refuses_is_told_in_words():
    gpus, trouble = read_gpus(_nvml())
    assert gpus == ()
    assert trouble is not None
    assert "not supported" in trouble
