"""Raw data of runs, written to files and read back."""

from __future__ import annotations

import builtins
import csv
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import BenchwrightError, InvalidInput
from benchwright.core.machine import Accelerator, Machine
from benchwright.core.measurement import Measurement
from benchwright.core.metric import Direction, MetricSpec
from benchwright.core.note import Note
from benchwright.core.run import Launch, Result, Run
from benchwright.core.status import Reason, Status
from benchwright.core.stop_rule import StopRule
from benchwright.record.loops.steps import samples_of
from benchwright.report.export import export_csv, export_json, export_parquet, read_export
from benchwright.report.export.long_table import COLUMNS

ODD = "n'a\"m,e\r\n😀<b>|%s/"
SAMPLE = Path(__file__).parents[2] / "compat" / "exports" / "v1.json"
EXPORTS: dict[str, Callable[[list[Run], Path], None]] = {
    "json": export_json,
    "csv": export_csv,
    "parquet": export_parquet,
}
every_format = pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS.keys())


def measurement(samples: Sequence[float], **fields: Any) -> Measurement:
    return Measurement(metric="rate", unit="it/s", direction=Direction.HIGHER, samples=samples, source="loop", **fields)


def a_run(name: str = "r.1") -> Run:
    benchmark = Benchmark(
        name=ODD,
        workload=Command(argv=("x", ODD), cwd="/"),
        source="t",
        metrics=(MetricSpec(name="speed", pattern="x"),),
        stop=StopRule(steps=3),
        env={"API_TOKEN": "abc", "PLAIN": "1", "GONE": None},
    )
    launches = (
        Launch(job="w", status=Status.OK, warmup=True, measurements=(measurement((9.0,), warmup_samples=(8.0,)),)),
        Launch(
            job="a",
            status=Status.OK,
            launch=0,
            measurements=(
                measurement((0.1 + 0.2, math.nan, math.inf, -math.inf), warmup_samples=(5e-324, 1e300)),
                measurement((1.0,), labels={"device": "0", "odd": ODD}),
            ),
            notes=(Note(text="n", evidence="f"),),
            facts={"loops": [{"name": "train", "share": 0.5}]},
        ),
        Launch(job="b", status=Status.FAILED, reason=Reason.CRASHED, launch=1, exit_code=1, duration_s=0.5),
    )
    machine = Machine(
        hostname="h",
        system="Linux",
        kernel="6",
        architecture="x",
        cpu="c",
        cores=2,
        cores_total=2,
        memory_bytes=1,
        python="3",
        accelerators=(Accelerator(index=0, name="g"),),
    )
    failed = Result(benchmark=benchmark, status=Status.FAILED, reason=Reason.CRASHED, launches=launches, overlap=0.9)
    return Run(
        id=name,
        name="r",
        started="2026-01-01T00:00:00+00:00",
        folder="/f",
        status=Status.FAILED,
        machine=machine,
        results=(failed,),
        labels={"k": "v"},
        packages={"env": {"numpy": "2.0"}},
    )


EXPECTED = [
    ("w", None, "ok", "warmup", 0, 8.0),
    ("w", None, "ok", "warmup", 1, 9.0),
    ("a", 0, "ok", "warmup", 0, 5e-324),
    ("a", 0, "ok", "warmup", 1, 1e300),
    ("a", 0, "ok", "measured", 0, 0.1 + 0.2),
    ("a", 0, "ok", "measured", 1, math.nan),
    ("a", 0, "ok", "measured", 2, math.inf),
    ("a", 0, "ok", "measured", 3, -math.inf),
    ("a", 0, "ok", "measured", 0, 1.0),
]


def without_secrets(run: Run) -> Run:
    replace = msgspec.structs.replace
    (result,) = run.results
    env = {"API_TOKEN": "(redacted)", "PLAIN": "1", "GONE": None}
    return replace(run, results=(replace(result, benchmark=replace(result.benchmark, env=env)),))


class TestJson:
    def test_what_is_written_reads_back_the_same(self, tmp_path: Path) -> None:
        runs = [a_run(), a_run("r.2")]
        export_json(runs, tmp_path / "x.json")
        # NaN is equal to nothing, so the texts are compared.
        assert repr(read_export(tmp_path / "x.json")) == repr([without_secrets(run) for run in runs])

    def test_files_of_version_1_stay_readable(self) -> None:
        """The sample is what version 1 wrote of `a_run`; it is never written again."""
        assert repr(read_export(SAMPLE)) == repr([without_secrets(a_run())])

    def test_it_is_strict_json_with_format_and_version_first(self, tmp_path: Path) -> None:
        export_json([a_run()], tmp_path / "x.json")

        def refuse(word: str) -> float:
            raise AssertionError(word)

        body = json.loads((tmp_path / "x.json").read_text(), parse_constant=refuse)
        assert list(body.items())[:2] == [("format", "benchwright-export"), ("version", 1)]
        samples = body["runs"][0]["results"][0]["launches"][1]["measurements"][0]["samples"]
        assert samples == [0.1 + 0.2, "nan", "inf", "-inf"]

    def test_secrets_do_not_leave(self, tmp_path: Path) -> None:
        export_json([a_run()], tmp_path / "x.json")
        assert "abc" not in (tmp_path / "x.json").read_text()

    def test_unknown_keys_are_skipped(self, tmp_path: Path) -> None:
        export_json([a_run()], tmp_path / "x.json")
        body = json.loads((tmp_path / "x.json").read_text())
        body["runs"][0]["later"] = body["later"] = 1
        (tmp_path / "x.json").write_text(json.dumps(body))
        assert len(read_export(tmp_path / "x.json")) == 1

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "not a benchwright-export file"),
            ("[]", "not a benchwright-export file"),
            ('{"format": "other", "version": 1, "runs": []}', "but 'other'"),
            ('{"format": "benchwright-export", "version": 2, "runs": []}', "version 2 is newer"),
            ('{"format": "benchwright-export", "version": 1, "runs": [{}]}', "damaged"),
            ("[" * 100_000, "not a benchwright-export file"),
        ],
        ids=["empty", "list", "other format", "newer", "damaged", "deep"],
    )
    def test_anything_else_is_refused(self, content: str, message: str, tmp_path: Path) -> None:
        (tmp_path / "x.json").write_text(content)
        with pytest.raises(InvalidInput, match=message):
            read_export(tmp_path / "x.json")

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidInput, match="cannot be read"):
            read_export(tmp_path / "x.json")


class TestLongTables:
    def test_csv_has_one_row_for_each_sample(self, tmp_path: Path) -> None:
        export_csv([a_run()], tmp_path / "x.csv")
        with open(tmp_path / "x.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        assert tuple(rows[0]) == COLUMNS
        found = [
            (
                r["job"],
                int(r["launch"]) if r["launch"] else None,
                r["status"],
                r["phase"],
                int(r["index"]),
                float(r["value"]),
            )
            for r in rows
        ]
        assert repr(found) == repr(EXPECTED)
        assert {r["benchmark"] for r in rows} == {ODD}
        assert json.loads(rows[-1]["labels"]) == {"device": "0", "odd": ODD}

    def test_parquet_has_the_same_rows_in_the_same_order(self, tmp_path: Path) -> None:
        duckdb = pytest.importorskip("duckdb")
        export_parquet([a_run()], tmp_path / "it's.parquet")
        with duckdb.connect() as database:
            table = database.read_parquet(str(tmp_path / "it's.parquet"))
            assert tuple(table.columns) == COLUMNS
            assert [str(t) for t in table.types] == ["VARCHAR"] * 4 + ["INTEGER"] + ["VARCHAR"] * 5 + [
                "BIGINT",
                "DOUBLE",
            ]
            rows = [dict(zip(COLUMNS, row, strict=True)) for row in table.fetchall()]
        keys = ("job", "launch", "status", "phase", "index", "value")
        assert repr([tuple(row[k] for k in keys) for row in rows]) == repr(EXPECTED)
        assert {(r["run"], r["benchmark"], r["metric"], r["unit"]) for r in rows} == {("r.1", ODD, "rate", "it/s")}

    def test_parquet_without_duckdb_says_what_to_install(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = builtins.__import__

        def without_duckdb(name: str, *rest: Any) -> Any:
            if name == "duckdb":
                raise ModuleNotFoundError(name)
            return real(name, *rest)

        monkeypatch.setattr(builtins, "__import__", without_duckdb)
        with pytest.raises(BenchwrightError, match=r"pip install 'benchwright\[analytics\]'"):
            export_parquet([a_run()], tmp_path / "x.parquet")


@every_format
@pytest.mark.parametrize("count", [4000, 4096, 20_000])
def test_long_series_are_written_whole(export: Callable[[list[Run], Path], None], count: int, tmp_path: Path) -> None:
    """A long one is an `array`: what the record makes of a stream."""
    values = [index + 0.5 for index in range(count)] + [math.nan]
    long = measurement(samples_of(values), warmup_samples=samples_of([1.0], like=values))
    launch = Launch(job="a", status=Status.OK, measurements=(long,))
    run = msgspec.structs.replace(a_run(), results=(msgspec.structs.replace(a_run().results[0], launches=(launch,)),))
    export([run], tmp_path / "x")
    assert f"{count - 0.5}" in written_values(tmp_path / "x")
    if export is export_json:
        (back,) = read_export(tmp_path / "x")[0].results[0].launches[0].measurements
        assert list(map(repr, back.samples)) == list(map(repr, values))


def written_values(path: Path) -> str:
    if path.read_bytes()[:4] != b"PAR1":
        return path.read_text()
    duckdb = pytest.importorskip("duckdb")
    return str([row[0] for row in duckdb.sql(f"SELECT value FROM read_parquet('{path}')").fetchall()])


@every_format
def test_no_runs_give_a_file_all_the_same(export: Callable[[list[Run], Path], None], tmp_path: Path) -> None:
    export([], tmp_path / "x")
    assert (tmp_path / "x").stat().st_size > 0


@every_format
def test_bytes_that_are_no_utf8_do_not_stop_it(export: Callable[[list[Run], Path], None], tmp_path: Path) -> None:
    run = a_run("r\udcff")
    export([run], tmp_path / "x")
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@every_format
def test_a_folder_that_cannot_be_written_to_is_said_and_nothing_is_left(
    export: Callable[[list[Run], Path], None], tmp_path: Path
) -> None:
    with pytest.raises(BenchwrightError, match="choose another place"):
        export([a_run()], tmp_path / "none" / "x")
    assert list(tmp_path.iterdir()) == []


@every_format
def test_a_failure_leaves_the_old_file_as_it_was(export: Callable[[list[Run], Path], None], tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    broken = msgspec.structs.replace(a_run(), results=(None,))  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        export([broken], tmp_path / "x")
    assert (tmp_path / "x").read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["x"]


@every_format
def test_a_device_is_written_to_and_stays_one(export: Callable[[list[Run], Path], None], tmp_path: Path) -> None:
    export([a_run()], Path("/dev/null"))
    assert Path("/dev/null").is_char_device()


@every_format
def test_a_link_stays_a_link(export: Callable[[list[Run], Path], None], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "x")
    export([a_run()], tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "x").is_file()
