"""The tables of the store at its newest version. The migrations create them; a test checks that the two agree.

runs          one row for each run: what lists and filters need, and nothing large
documents     the rest of the run without its samples: compressed JSON
results       the benchmarks of a run
run_labels    labels of a run and of its benchmarks
series        what is measured again and again: benchmark, metric, labels and how it is read
measurements  one launch's samples of a series: the condensed number, and how the raw samples are encoded
samples       the raw samples of a run: all its arrays, concatenated, in pieces of equal size
baselines     names for runs
summary_series  what may be compared over time: benchmark, metric and labels on one machine, with one setting
summaries     what reports show of a run: one number for each benchmark, metric and labels; derived from the samples
comparables   all that comparing a run needs, without its samples; derived from them
logs          the last lines of the launches that failed
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)

VERSION = "0007"  # the newest migration
VERSION_TABLE = "benchwright_version"

MAIN = "main"  # the project of runs unless another one is named

version = Table(VERSION_TABLE, MetaData(), Column("version_num", String(32)))  # Alembic's own table
metadata = MetaData()


def _of_run(*, primary_key: bool = False) -> Column[int]:
    return Column("run", Integer, ForeignKey("runs.key", ondelete="CASCADE"), nullable=False, primary_key=primary_key)


runs = Table(
    "runs",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),  # Run.unique_id
    Column("digest", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("started", Text, nullable=False),  # as written, with its zone
    Column("started_s", Double, nullable=False),  # seconds since 1970, to sort by; 0 if unknown
    Column("ended", Text),
    Column("status", Text, nullable=False),
    Column("machine", Text, nullable=False),  # the fingerprint
    Column("host", Text, nullable=False),
    Column("folder", Text, nullable=False),
    Column("labels", Text, nullable=False),  # JSON
    Column("benchmarks", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("measurements", Integer, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("annotation", Text),
    Column("called", Text, nullable=False, server_default=""),  # Run.id; runs of two base folders may share one
    Column("revision", Text, nullable=False, server_default=""),  # of the code that was measured, in words
    Column("measured_commit", Text),  # the commit alone, with a `+` where files were modified
    Column("commit_time", Text),
    Column("summarized", Integer, nullable=False, server_default="0"),  # by which rules; see summaries.py
    Column("project", Text, nullable=False, server_default=MAIN),
    Index("runs_by_called", "called", postgresql_using="hash"),
    Index("runs_by_start", "project", "started_s", "key"),
    Index("runs_by_host", "project", "host", "started_s"),  # has all that a list of machines needs
    Index("runs_by_name", "name"),
    Index("runs_by_machine", "machine"),
)

documents = Table(
    "documents",
    metadata,
    _of_run(primary_key=True),
    Column("encoding", Text, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

results = Table(
    "results",
    metadata,
    _of_run(primary_key=True),
    Column("result", Integer, primary_key=True),  # its number in the run
    Column("benchmark", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", Text),
    # A hash index takes names of any length, PostgreSQL's B-tree only 2,700 bytes.
    Index("results_by_benchmark", "benchmark", postgresql_using="hash"),
)

run_labels = Table(
    "run_labels",
    metadata,
    Column("pair", String(32), primary_key=True),  # a hash of label and value, which may be of any length
    _of_run(primary_key=True),
    Column("label", Text, nullable=False),
    Column("value", Text, nullable=False),
    Index("run_labels_by_run", "run"),
)

series = Table(
    "series",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("hash", String(32), nullable=False, unique=True),  # of the columns that follow
    Column("benchmark", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("labels", Text, nullable=False),  # JSON, keys sorted
    Column("unit", Text),
    Column("direction", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("aggregate", Text, nullable=False),
    Index("series_by_benchmark", "benchmark", postgresql_using="hash"),
)

measurements = Table(
    "measurements",
    metadata,
    _of_run(primary_key=True),
    Column("place", Integer, primary_key=True),  # its number in the run, in the order of the arrays
    Column("value", Double),  # condensed by the series' method; NULL if there is none or it is NaN
    Column("result", Integer, nullable=False),
    Column("launch", Integer, nullable=False),  # its number in the result
    Column("measurement", Integer, nullable=False),  # its number in the launch
    Column("series", Integer, ForeignKey("series.key"), nullable=False),
    Column("warmup_samples", Integer, nullable=False),  # these come first in the array
    Column("samples", Integer, nullable=False),
    Column("size_bytes", Integer, nullable=False),  # of the encoded array
    Column("counted", Boolean, nullable=False),  # the launch succeeded and was not a warm-up
    Column("encoding", Text, nullable=False),  # see samples.py
    Column("checksum", Integer, nullable=False, server_default="0"),  # of the encoded array
    Index("measurements_by_series", "series", "run"),
)

samples = Table(
    "samples",
    metadata,
    _of_run(primary_key=True),
    Column("piece", Integer, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

baselines = Table(
    "baselines",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("name", Text, nullable=False),
    _of_run(),
    Column("project", Text, nullable=False, server_default=MAIN),  # as of its run
    Index("baselines_by_run", "run"),
    Index("baselines_by_name", "project", "name", unique=True),
)

summary_series = Table(
    "summary_series",
    metadata,
    Column("key", Integer, primary_key=True),
    Column("hash", String(32), nullable=False, unique=True),  # of the columns that follow
    Column("benchmark", Text, nullable=False),
    Column("pair", Text, nullable=False),  # of the treatment of an A/B: the name that its sides share
    Column("metric", Text, nullable=False),
    Column("labels", Text, nullable=False),  # JSON
    Column("unit", Text),
    Column("direction", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("machine", Text, nullable=False),  # the fingerprint
    Column("host", Text, nullable=False),
    Column("setting", Text, nullable=False),  # JSON
    Column("project", Text, nullable=False, server_default=MAIN),
    Index("summary_series_by_benchmark", "benchmark", postgresql_using="hash"),
)

summaries = Table(
    "summaries",
    metadata,
    Column("key", Integer, primary_key=True),
    _of_run(),
    Column("place", Integer, nullable=False),  # its number in the run
    Column("result", Integer, nullable=False),
    Column("series", Integer, ForeignKey("summary_series.key"), nullable=False),
    Column("started_s", Double, nullable=False),  # as of its run
    Column("value", Double),  # NULL if it is not finite
    Column("low", Double),  # the confidence interval; NULL if there is none
    Column("high", Double),
    Column("widened", Double, nullable=False),
    Column("launches", Integer, nullable=False),
    Column("headline", Boolean, nullable=False),  # the metric that the benchmark is known by
    Column("revision", Text),  # of one side of an A/B; else it is that of the run
    Column("doubt", Text),  # why it decides nothing
    Index("summaries_by_run", "run"),
    Index("summaries_by_series", "series", "started_s", "value"),
)

comparables = Table(
    "comparables",
    metadata,
    _of_run(primary_key=True),
    Column("data", LargeBinary, nullable=False),  # MessagePack, compressed: see analysis/comparison/comparable.py
)

logs = Table(
    "logs",
    metadata,
    _of_run(primary_key=True),
    Column("launch", Integer, primary_key=True),  # their number among those of the run
    Column("job", Text, nullable=False),
    Column("lines", LargeBinary, nullable=False),  # UTF-8, compressed
)
