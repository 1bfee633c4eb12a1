"""`benchwright cache list | stats | delete | clean` on builds of models, and the labels kept with them."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path

import pytest
from command_line import CommandLine

import benchwright
from benchmodels.build.cache import BuildCache
from benchmodels.build.labels import keep_labels, kept_labels
from benchmodels.compat.mlagility.common.labels import load_from_cache, load_from_file, save_to_cache

GOOGLE = {"author": "google", "test_group": "daily,monthly"}
BERT, GPT, EAGER = "bert_google_8c1f02aa", "gpt2_openai_11112222", "vit_google_33334444"
DAY_S = 24 * 3600


@pytest.fixture
def bw(tmp_path: Path) -> CommandLine:
    """A base with builds of BERT for two runtimes, of GPT-2 for one, and labels of a model that was measured in eager only."""
    made = CommandLine(tmp_path / "base", tmp_path)
    builds = made.base / "builds"
    for key, name, runtime, size, labels in (
        ("a" * 32, BERT, "onnxruntime", 3000, GOOGLE),
        ("b" * 32, BERT, "openvino", 2000, GOOGLE),
        ("c" * 32, GPT, "onnxruntime", 9000, {"author": "openai"}),
    ):

        def make(place: Path, size: int = size) -> None:
            (place / "model.bin").write_bytes(bytes(size))

        parts = {"runtime": runtime, "precision": "fp32", "versions": {"torch": "2.13.0"}}
        BuildCache(builds).entry(key, make, parts=parts, about={"name": name, "labels": labels}).release()
        keep_labels(str(builds), name, labels)
    keep_labels(str(builds), EAGER, {"author": "google"})
    return made


def names(bw: CommandLine, *words: str) -> list[tuple[str, str]]:
    return [(e["name"], e["runtime"]) for e in json.loads(bw("cache", "list", "--json", *words).stdout)]


def test_each_build_has_its_name_runtime_and_labels(bw: CommandLine) -> None:
    assert names(bw) == [(GPT, "onnxruntime"), (BERT, "onnxruntime"), (BERT, "openvino"), (EAGER, "")]
    first = json.loads(bw("cache", "list", "--json").stdout)[1]
    assert first["labels"] == GOOGLE
    assert time.time() - first["made"] < 60
    shown = bw("cache").stdout
    assert re.search(rf"^ {BERT} +build +3\.\d+ KiB onnxruntime fp32 ", shown, re.MULTILINE)
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_builds_of_one_model_that_were_built_in_another_way_can_be_told_apart(bw: CommandLine) -> None:
    def make(place: Path) -> None:
        (place / "model.bin").write_bytes(b"x")

    parts = {"runtime": "onnxruntime", "precision": "fp32", "onnx_opset": 17, "sequence": "1234"}
    about = {"name": BERT, "sequence_file": "int8.py"}
    BuildCache(bw.base / "builds").entry("d" * 32, make, parts=parts, about=about).release()
    ways = [entry["way"] for entry in json.loads(bw("cache", "list", "--json").stdout) if entry["name"] == BERT]
    assert ways == ["", "", "opset17 int8.py"]
    assert "onnxruntime fp32 opset17 int8.py" in bw("cache", "list").stdout
    assert "onnxruntime in fp32 (opset17 int8.py): " in bw("cache", "stats", BERT).stdout
    assert "onnxruntime fp32 opset17 int8.py, " in bw("cache", "delete", BERT, "--dry-run").stdout


def test_the_list_can_be_narrowed(bw: CommandLine) -> None:
    assert names(bw, "--label", "author=google") == [(BERT, "onnxruntime"), (BERT, "openvino"), (EAGER, "")]
    assert names(bw, "--label", "test_group=monthly", "--runtime", "openvino") == [(BERT, "openvino")]
    assert names(bw, "gpt*") == [(GPT, "onnxruntime")]
    assert names(bw, "--unused", "1d") == []
    old = time.time() - 3 * DAY_S
    for path in (bw.base / "builds" / ("c" * 32), bw.base / "builds" / f"{'c' * 32}.lock"):
        os.utime(path, (old, old))
    assert names(bw, "--unused", "1d") == [(GPT, "onnxruntime")]
    assert "nothing in the caches matches" in bw("cache", "list", "nothing*").stdout


def test_stats_of_a_build_and_of_all(bw: CommandLine) -> None:
    told = json.loads(bw("cache", "stats", BERT, "--json").stdout)
    assert told["labels"] == GOOGLE
    assert [build["runtime"] for build in told["builds"]] == ["onnxruntime", "openvino"]
    assert told["builds"][0]["parts"]["versions"] == {"torch": "2.13.0"}
    assert "no build is kept" in bw("cache", "stats", EAGER).stdout
    totals = {each["runtime"]: each["size_bytes"] for each in json.loads(bw("cache", "stats", "--json").stdout)}
    assert totals["onnxruntime"] > 12_000 > totals["openvino"]
    wrong = bw("cache", "stats", "bert_gogle_8c1f02aa", code=2)
    assert BERT in wrong.stderr


def test_what_torch_compiled_and_what_was_found_in_scripts_are_no_builds(bw: CommandLine) -> None:
    for folder, size in (("inductor", 700), ("discoveries", 90)):
        (bw.base / "builds" / folder).mkdir()
        assert folder not in dict(names(bw))  # as long as there is nothing in it
        (bw.base / "builds" / folder / "file").write_bytes(bytes(size))
    kinds = {each["name"]: each["kind"] for each in json.loads(bw("cache", "list", "--json").stdout)}
    assert (kinds["inductor"], kinds["discoveries"]) == ("compiled", "searches")
    totals = {each["runtime"]: each for each in json.loads(bw("cache", "stats", "--json").stdout)}
    assert {runtime: each["builds"] for runtime, each in totals.items()} == {
        **{"onnxruntime": 2, "openvino": 1},
        **{"without a build": 0, "torch-compile, of all models": 0},
    }
    bw("cache", "stats", "inductor", code=2)
    bw("cache", "delete", "inductor", "--yes")
    assert "discoveries" in dict(names(bw))
    bw("cache", "delete", "--all", "--yes")
    assert names(bw) == []


def test_the_results_of_a_build_are_those_of_its_name(bw: CommandLine) -> None:
    run = bw.base / "runs" / "r"
    run.mkdir(parents=True)
    model = {"build": GPT, "runtime": "onnxruntime", "precision": "fp32", "vs_eager": 1.5}
    results = [
        {"status": "ok", "model": model, "metrics": [{"metric": "latency", "value": 0.002}]},
        {"status": "ok", "model": model | {"build": BERT}, "metrics": [{"metric": "latency", "value": 0.5}]},
    ]
    (run / "plan.json").write_text("{}")
    (run / "run.json").write_text(json.dumps({"id": "r", "started": "2026-11-16", "results": results}))
    assert "2 ms" in bw("cache", "stats", GPT).stdout
    (result,) = json.loads(bw("cache", "stats", GPT, "--json").stdout)["results"]
    assert (result["latency_s"], result["vs_eager"]) == (0.002, 1.5)


def test_delete_takes_globs_asks_and_removes_labels_with_the_last_build(bw: CommandLine) -> None:
    asked = bw("cache", "delete", "bert*", "--runtime", "openvino", code=2)
    assert "--yes" in asked.stderr
    bw("cache", "delete", "bert*", "--runtime", "openvino", "--yes")
    assert names(bw, "bert*") == [(BERT, "onnxruntime")]
    assert kept_labels(str(bw.base), BERT) == {"author": ["google"], "test_group": ["daily", "monthly"]}
    bw("cache", "delete", BERT, EAGER, "--yes")
    assert names(bw) == [(GPT, "onnxruntime")]
    assert [path.name for path in (bw.base / "labels").iterdir()] == [f"{GPT}.txt"]
    bw("cache", "delete", "bert*", "--yes", code=2)
    bw("cache", "delete", code=2)


def test_clean_keeps_labels(bw: CommandLine) -> None:
    bw("cache", "clean", "--label", "author=google", "--yes")
    assert dict(names(bw)) == {GPT: "onnxruntime", BERT: "", EAGER: ""}
    bw("cache", "clean", "--all", "--yes")
    assert {name for name, _ in names(bw)} == {BERT, EAGER, GPT}


def test_a_build_in_use_stays(bw: CommandLine) -> None:
    held = BuildCache(bw.base / "builds").entry("a" * 32, lambda place: None, rebuild="never")
    kept = bw("cache", "delete", BERT, "--yes", code=1)
    assert "is in use and was kept" in kept.stderr
    assert names(bw, "bert*") == [(BERT, "onnxruntime")]
    assert kept_labels(str(bw.base), BERT)
    held.release()


def test_mlagilitys_functions_read_what_a_run_wrote(bw: CommandLine, tmp_path: Path) -> None:
    assert load_from_cache(str(bw.base), BERT) == {"author": ["google"], "test_group": ["daily", "monthly"]}
    assert benchwright.load_labels(BERT, cache_dir=bw.base) == load_from_cache(str(bw.base), BERT)
    save_to_cache(str(tmp_path / "other"), "mine_1", {"author": ["me"], "note": ["two words"]})
    assert load_from_cache(str(tmp_path / "other"), "mine_1") == {"author": ["me"], "note": ["two_words"]}
    (tmp_path / "a.py").write_text("# labels: author::me test_group::daily,monthly\nx = 1\n")
    assert load_from_file(str(tmp_path / "a.py")) == {"author": ["me"], "test_group": ["daily", "monthly"]}
    with pytest.raises(FileNotFoundError):
        load_from_cache(str(bw.base), "nothing_1")
    for escape in ("../store", "", "a/b"):
        with pytest.raises(ValueError, match="is not the name of a build"):
            load_from_cache(str(bw.base), escape)


def test_cache_dir_is_another_name_of_base(bw: CommandLine, tmp_path: Path) -> None:
    listed = bw("cache", "location", "--cache-dir", str(tmp_path / "elsewhere"))
    assert listed.stdout.strip() == str(tmp_path / "elsewhere")
