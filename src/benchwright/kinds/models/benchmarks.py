"""Benchmarks from the models of a script: one for each model, runtime, device and precision."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from benchwright.core.benchmark import Benchmark, Placement
from benchwright.core.errors import InvalidInput, did_you_mean
from benchwright.core.model import (
    BUILD_RUNTIME,
    DEFAULT_RUNTIME,
    NEVER_CALLED,
    PRECISIONS,
    FoundModel,
    Model,
    ModelScript,
    ScriptDiscovery,
)
from benchwright.core.status import Reason
from benchwright.core.stop_rule import StopRule, Warmup
from benchwright.kinds.models.build_options import as_built
from benchwright.kinds.models.training_script import training_of
from benchwright.kinds.runtime_names import known_runtime
from benchwright.kinds.sweep import Point, idle_parameters, named_point
from benchwright.options.table import OF_MODEL, Options

SHOWN_DIGITS = 8  # of an identity
ITEMS_OPTION = "--items"
# Precise enough to see one percent, but bounded: a slow model makes few calls in this time.
USUAL_STOP = StopRule(precision=0.01, min_steps=30, max_seconds=10.0)
USUAL_WARMUP = Warmup(max_seconds=5.0)
BEFORE_A_MODEL = " (before it called a model)"
_AS_COMMAND = "time all of it with --as command"
_IDLE = "--param {0}: models, weights and input shapes are the same for every value; the script may ignore it"

_ONLY_EAGER = f"generation is a loop in Python; measure it with --runtime {DEFAULT_RUNTIME}"


def benchmarks_of(asked: Benchmark, discovery: ScriptDiscovery, options: Options) -> list[Benchmark]:
    """The benchmarks of `asked`, whose workload is a ModelScript; the script itself, with the reason, if it has no model."""
    assert isinstance(asked.workload, ModelScript)
    chosen = selected_models(discovery, asked.workload.select)
    training = training_of(asked, discovery)
    failed_before = discovery.trouble is not None and all(model.mode == NEVER_CALLED for model in discovery.models)
    if not discovery.models or failed_before:
        return training or [_without_model(asked, discovery)]
    names = _names(chosen)
    made = []
    for model in chosen:
        name = _named(asked, names[model.identity])
        if not model.measurable:
            made.append(_withheld(asked, model, name, discovery, options, _why_not(model, discovery)))
            continue
        if model.method and not any(known_runtime(each.runtime).calls_methods for each in variants(options)):
            made.append(_withheld(asked, model, name, discovery, options, _ONLY_EAGER))
            continue
        made += _on_each(asked, model, name, discovery, options)
    return [*training, *made]


def with_idle_parameters_noted(asked: Sequence[Benchmark], found: Mapping[str, ScriptDiscovery]) -> list[Benchmark]:
    """With a note on scripts that a swept parameter does not affect: their rows would look like measurements of it."""
    scripts: dict[str, list[Benchmark]] = {}
    for benchmark in asked:
        if benchmark.parameters and benchmark.name in found:
            scripts.setdefault(benchmark.source, []).append(benchmark)
    notes: dict[str, tuple[str, ...]] = {}
    for swept in scripts.values():
        points = [(b.parameters, frozenset((m.identity, m.weights) for m in found[b.name].models)) for b in swept]
        if any(what for _, what in points):
            texts = tuple(_IDLE.format(name) for name in idle_parameters(points))
            notes |= {b.name: texts for b in swept}
    return [msgspec.structs.replace(b, notes=(*b.notes, *notes.get(b.name, ()))) for b in asked]


class ModelVariant(msgspec.Struct, frozen=True):
    """One way to measure a model. `swept`: the numbers of threads and callers that tell it from the others."""

    runtime: str
    device: str
    precision: str
    threads: int | None
    streams: int
    swept: Point

    @property
    def fields(self) -> dict[str, Any]:
        """Of a `Model`."""
        return {name: getattr(self, name) for name in self.__struct_fields__ if name != "swept"}


def variants(options: Options, usual: str = DEFAULT_RUNTIME, device: str | None = None) -> list[ModelVariant]:
    """`device`: where the model is called, which counts unless others were asked for."""
    runtimes = options.runtimes or ((BUILD_RUNTIME,) if options.stops_after else (usual,))
    devices = options.devices or (usual_device(device),)
    loads = [
        (
            threads,
            streams,
            _several("threads", options.threads, threads) | _several("streams", options.streams, streams),
        )
        for threads in options.threads or (None,)
        for streams in options.streams or (1,)
    ]
    return [
        ModelVariant(r, d, p, *load) for d in devices for p in options.precisions for r in runtimes for load in loads
    ]


def _several(name: str, counts: Sequence[int], own: int | None) -> Point:
    return {name: str(own)} if len(counts) > 1 else {}


def usual_device(called_on: str | None) -> str:
    """Where a model is measured by default; the processor if it is called on something that cannot be measured on."""
    kind, _, index = (called_on or "cpu").partition(":")
    return "cpu" if kind != "cuda" else f"cuda:{index}" if int(index or 0) else "cuda"


def variant_name(model: Model, swept: Point) -> str:
    """`@onnxruntime`, with device, precision and way of building if not the defaults, and `streams=4` of a sweep."""
    rest = [word for word, usual in ((model.device, "cpu"), (model.precision, "fp32")) if word != usual]
    loads = [f"{name}={count}" for name, count in swept.items()]
    return "@" + ",".join([model.runtime, *rest, *model.build_variant, *loads])


def on_device(device: str) -> Placement:
    return Placement() if device == "cpu" else Placement(needs_devices=1 + int(device.partition(":")[2] or 0))


def with_profile(benchmark: Benchmark) -> list[Benchmark]:
    """The benchmark and, for times of operators, a second one: profiling slows a model down."""
    workload = benchmark.workload
    assert isinstance(workload, Model)
    if not workload.profile:
        return [benchmark]
    replace = msgspec.structs.replace
    plain = replace(benchmark, workload=replace(workload, profile=False))
    return [plain, replace(benchmark, name=f"{benchmark.name} profile")]


def _on_each(
    asked: Benchmark, model: FoundModel, name: str, discovery: ScriptDiscovery, options: Options
) -> Iterable[Benchmark]:
    assert isinstance(asked.workload, ModelScript)
    for variant in variants(options, device=model.device):
        runtime, device = variant.runtime, variant.device
        if model.method and not known_runtime(runtime).calls_methods:
            continue  # a loop in Python
        workload = _workload(asked.workload, model, discovery, options, **variant.fields)
        yield from with_profile(
            msgspec.structs.replace(
                asked,
                name=name + variant_name(workload, variant.swept),
                workload=workload,
                parameters=asked.parameters | variant.swept,
                placement=msgspec.structs.replace(asked.placement, needs_devices=_gpus(device, discovery)),
                stop=asked.stop or USUAL_STOP,
                warmup=USUAL_WARMUP if asked.warmup == Warmup() else asked.warmup,
                loop="latency",
                notes=(
                    *asked.notes,
                    *_notes(model, discovery),
                    *_moved(model, device),
                    *_autocast(model, runtime, variant.precision),
                ),
                labels=discovery.labels | asked.labels,
            )
        )


def model_of(options: Options, **fields: Any) -> Model:
    """A model that is measured and built as the options say; `fields` say which one it is."""
    asked = {name: getattr(options, name) for name in OF_MODEL}
    asked["items_from"] = None if options.items is None else ITEMS_OPTION
    asked["weights_in_identity"] = options.weights
    return as_built(Model(**{**asked, **fields}))


def _workload(
    script: ModelScript,
    model: FoundModel,
    discovery: ScriptDiscovery,
    options: Options,
    runtime: str = DEFAULT_RUNTIME,
    **variant: str,
) -> Model:
    return model_of(
        options,
        runtime=runtime,
        **variant,
        python=script.python,
        cwd=script.cwd,
        script=script.path,
        args=script.args,
        identity=model.identity,
        weights=model.weights,
        content=model.content,
        class_=model.class_,
        parameters=model.parameters,
        place=place_of(model),
        inputs=model.inputs,
        items=model.items,
        items_from=model.items_from,
        varying=model.varying,
        set_to_eval=model.in_training,
        source_note=discovery.source_note,
    )


def _withheld(
    asked: Benchmark, model: FoundModel, name: str, discovery: ScriptDiscovery, options: Options, why: str
) -> Benchmark:
    """A found model that is not measured: it stays in the results, with the reason."""
    assert isinstance(asked.workload, ModelScript)
    return msgspec.structs.replace(
        asked,
        name=name,
        workload=_workload(asked.workload, model, discovery, options),
        withheld=why,
        notes=(*asked.notes, *_notes(model, discovery)),
        labels=discovery.labels | asked.labels,
    )


def _without_model(asked: Benchmark, discovery: ScriptDiscovery) -> Benchmark:
    """The script itself, with the reason why nothing is measured; it is not run again."""
    script = asked.workload
    assert isinstance(script, ModelScript)
    replace = msgspec.structs.replace
    noted = replace(asked, notes=(*asked.notes, *discovery.notes), labels=discovery.labels | asked.labels)
    if discovery.trouble is not None:
        failure = (discovery.reason or Reason.CRASHED, f"{discovery.trouble}{BEFORE_A_MODEL}")
        return replace(noted, workload=replace(script, failure=failure))
    return replace(noted, withheld=why_none(discovery))


def _why_not(model: FoundModel, discovery: ScriptDiscovery) -> str:
    """Why it was not measured; a failure of the script goes before that the model was not called."""
    if discovery.trouble is not None and model.mode == NEVER_CALLED:
        return f"the script failed before calling it: {discovery.trouble}"
    return model.why_not_measured


def why_none(discovery: ScriptDiscovery) -> str:
    others = " and ".join(discovery.frameworks[:2])
    if others:
        what = f"it uses {others}, and only models of torch are looked for"
        return f"{what}; {_AS_COMMAND}, mark its loop with benchprobe.iterate, or measure a model file such as .onnx"
    return f"it calls no model of torch; {_AS_COMMAND}"


def _named(asked: Benchmark, model: str) -> str:
    """`bert.py::BertModel[batch_size=8]`."""
    point = named_point(asked.parameters)
    return f"{asked.name.removesuffix(point)}::{model}{point}"


def place_of(model: FoundModel) -> str:
    place = model.place or model.made_at
    if not place:
        return ""
    cell = f" cell {place['cell']}" if "cell" in place else ""
    return f"{os.path.basename(str(place.get('file')))}{cell}:{place.get('line')}"


def _notes(model: FoundModel, discovery: ScriptDiscovery) -> tuple[str, ...]:
    notes = list(discovery.notes)
    if discovery.trouble and model.mode != NEVER_CALLED:
        notes.append(f"the script failed after this model was found: {discovery.trouble}")
    elif discovery.trouble:
        notes.append(f"the script failed before calling this model: {discovery.trouble}")
    if model.other_shapes:
        notes.append(f"it was also called with {model.other_shapes} other shapes, which are not measured")
    if model.in_training and model.measurable:
        layers = " and ".join(model.mode_dependent[:3])
        why = f"; its {layers} behave differently in training" if layers else ""
        notes.append(f"set to eval() to be measured: the script calls it in training mode{why}")
    return tuple(notes)


def _autocast(model: FoundModel, runtime: str, precision: str) -> tuple[str, ...]:
    """A note on a model that the script calls under autocast."""
    region = next((wrapper for wrapper in model.wrappers if wrapper.startswith("autocast ")), None)
    if region is None:
        return ()
    if precision != PRECISIONS[0]:
        return (f"measured in {precision} as asked, not under {region} as the script calls it",)
    if known_runtime(runtime).applies_autocast:
        return (f"measured under {region}, as the script calls it",)
    return (f"the script calls it under {region}, which {runtime} does not apply; use --precision bf16 or fp16",)


def _gpus(device: str, discovery: ScriptDiscovery) -> int:
    """How many GPUs its process sees: on a GPU as many as the script uses, which runs again to get there."""
    if device == "cpu":
        return 0
    used = (each for model in discovery.models for each in (model.device, *model.other_devices) if each)
    return max(on_device(each).needs_devices for each in (device, *map(usual_device, used)))


def _moved(model: FoundModel, device: str) -> tuple[str, ...]:
    """A note if it is measured elsewhere than its script calls it."""
    own = (model.device or device).partition(":")[0]
    if own != device.partition(":")[0]:
        known = usual_device(own) == own
        remedy = f"use --device {own} to match" if known else f"models cannot be measured on {own} yet"
        return (f"the script calls it on {own}, but it is measured on {device}; {remedy}",)
    if model.other_devices and own != "cpu":
        others = " and ".join((str(model.device), *model.other_devices))
        return (f"the script keeps parts of it on {others}, but it is measured on {device} alone",)
    return ()


def _names(models: Sequence[FoundModel]) -> dict[str, str]:
    """By identity: the class, with digits of the identity if several models have that class."""
    count = Counter(model.class_ for model in models)
    return {m.identity: m.class_ if count[m.class_] == 1 else f"{m.class_}-{m.identity[:4]}" for m in models}


def selected_models(discovery: ScriptDiscovery, words: Sequence[str]) -> list[FoundModel]:
    """The models that `script.py::word,word` selects, by class or start of identity."""
    if not words:
        return list(discovery.models)
    chosen: list[FoundModel] = []
    for word in words:
        meant = [m for m in discovery.models if m.class_ == word or (len(word) >= 4 and m.identity.startswith(word))]
        meant = meant or [m for m in discovery.models if word in (m.qualified, f"{m.class_}-{m.identity[:4]}")]
        if not meant:
            known = [m.class_ for m in discovery.models] + [m.identity[:SHOWN_DIGITS] for m in discovery.models]
            found = ", ".join(f"{m.class_} ({m.identity[:SHOWN_DIGITS]})" for m in discovery.models) or "no model"
            raise InvalidInput(
                f"no model '{word}' in it; it has {found}",
                where=discovery.script,
                remedy=did_you_mean(word, known) or "see 'benchwright find'",
            )
        chosen += [m for m in meant if m not in chosen]
    return chosen
