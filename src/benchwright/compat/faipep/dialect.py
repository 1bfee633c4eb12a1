"""Assumptions of FAI-PEP's specifications: its scripts, one thread for programs on a host, and the flags of its programs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from benchwright.kinds.spec.read.keys import THREADS
from benchwright.kinds.spec.spec_test import SpecTest

TFLITE = "tflite"


def command_of(test: SpecTest) -> str:
    """The command of a test that only names its inputs, with the flags of Caffe2's or TFLite's benchmark tool."""
    words = _tflite(test) if TFLITE in (test.framework, test.format) else _caffe2(test)
    return " ".join(["{program}", *words])


def _caffe2(test: SpecTest) -> list[str]:
    keys = [file.key for file in test.files]
    words = ["--init_net", "{files.init}"] if "init" in keys else []
    net = "predict" if "predict" in keys else next((key for key in keys if key != "init"), None)
    words += ["--net", f"{{files.{net}}}"] if net is not None else []
    words += ["--warmup", str(test.warmup), "--iter", str(test.iterations or 1)]
    names = [file.key for file in test.input_files] or [each.name for each in test.inputs]
    if names:
        words += ["--input", shlex.quote(",".join(names))]
    if test.input_files:
        words += ["--input_file", ",".join(f"{{input_files.{file.key}}}" for file in test.input_files)]
    elif test.inputs:
        words += ["--input_dims", f'"{_shapes(test, ";")}"']
    if test.inputs:
        types = list(dict.fromkeys(each.type for each in test.inputs))
        words += ["--input_type", types[0] if len(types) == 1 else f'"{";".join(e.type for e in test.inputs)}"']
    outputs = [golden.key for golden in test.goldens] or list(test.outputs if test.metric == "error" else ())
    if outputs:
        words += ["--output", shlex.quote(",".join(outputs)), "--text_output", "true", "--output_folder", "{TGTDIR}"]
    return words


def _tflite(test: SpecTest) -> list[str]:
    graph = next((file.key for file in test.files if file.key == "graph"), test.files[0].key if test.files else "graph")
    words = [f"--graph={{files.{graph}}}", f"--warmup_runs={test.warmup}", f"--num_runs={test.iterations or 1}"]
    if test.inputs:
        names = ",".join(each.name for each in test.inputs)
        words += [shlex.quote(f"--input_layer={names}"), f'--input_layer_shape="{_shapes(test, ":")}"']
    return words


def _shapes(test: SpecTest, between: str) -> str:
    return between.join(",".join(map(str, each.shape)) for each in test.inputs)


class FaiPepDialect:
    """`{FAIPEPROOT}/libraries/python` has scripts of ours with the arguments of FAI-PEP's."""

    def folders(self) -> Mapping[str, str]:
        return {"FAIPEPROOT": str(Path(__file__).parent)}

    def variables(self, test: SpecTest) -> Mapping[str, str]:
        return dict.fromkeys(THREADS, "1")

    def command(self, test: SpecTest) -> str | None:
        return command_of(test)
