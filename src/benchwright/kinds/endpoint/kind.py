"""An OpenAI-compatible server as a target: our client sends it requests, and is measured like any program."""

from __future__ import annotations

import os
import re

from msgspec.structs import replace

from benchload.settings import KEY_VARIABLE, USUAL_WORKLOAD, Settings, WrongSetting, parse, words_of
from benchload.workload import Workload
from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.errors import InvalidInput
from benchwright.kinds.base import Kind
from benchwright.kinds.interpreter import default_python
from benchwright.kinds.requests.gather import CLIENT_MODULE, RequestsGatherer
from benchwright.kinds.requests.report import contribution
from benchwright.options.table import Options
from benchwright.record.base import Gatherer
from benchwright.report.base import Contribution, Report

PREFIX = "openai:"
_OWN_SHARE, _LEAST_REST_S = 0.9, 2.0  # of a launch's limit: for the requests; and to start and to end


class EndpointKind(Kind):
    """Every setting is a word of the client's command line, the digest of what it asks among them: runs with others differ."""

    name = "endpoint"
    probe_packages = ("benchprobe", "benchload")
    starts_what_it_measures = False

    def recognises(self, target: str) -> bool:
        return re.match(rf"{PREFIX}https?://\S+$", target) is not None

    def read(self, target: str, options: Options) -> list[Benchmark]:
        settings = _settings(target, options)
        try:
            settings = settings._replace(digest=Workload(settings).digest())
            words = words_of(settings)
            parse(words)
        except WrongSetting as error:
            raise InvalidInput(str(error), where=error.option or target) from None
        load, address = settings.load, settings.address
        return [
            Benchmark(
                name=f"{settings.model}@{address.authority}",
                workload=Command(argv=(default_python(), *CLIENT_MODULE, *words), cwd=options.cwd or os.getcwd()),
                source=target,
                kind=self.name,
                parameters={"load": load.words, "workload": settings.workload},
            )
        ]

    def with_arguments(self, benchmark: Benchmark, words: tuple[str, ...]) -> Benchmark:
        """With other settings of the client, such as `--model B`; what it asks may change with them."""
        work = benchmark.workload
        assert isinstance(work, Command)
        before = 1 + len(CLIENT_MODULE)
        try:
            settings = parse([*work.argv[before:], *words])
            settings = settings._replace(digest=Workload(settings).digest())
        except WrongSetting as error:
            raise InvalidInput(str(error), where=f"args: {error.option}".rstrip(": ")) from None
        if settings.load != parse(work.argv[before:]).load:
            what = "figures of one load are not compared with those of another"
            raise InvalidInput(
                what, where="args: --load", remedy="measure them one after the other, or use --sweep rate"
            )
        return replace(benchmark, workload=replace(work, argv=(*work.argv[:before], *words_of(settings))))

    def alternates(self, benchmark: Benchmark) -> bool:
        return True

    def ends_with_verdict(self, benchmark: Benchmark) -> bool:
        return True

    def gatherer(self, benchmark: Benchmark) -> Gatherer:
        return RequestsGatherer(benchmark.warmup, alone=True)

    def report(self, report: Report) -> Contribution:
        return contribution(report, self.name)


def _settings(target: str, options: Options) -> Settings:
    if options.served_model is None:
        raise InvalidInput("which model is to answer?", where="--model", remedy="give its name: --model NAME")
    stop = options.stop
    if stop is not None and (stop.precision or stop.observations):
        raise InvalidInput("requests do not stop like that", where="--stop", remedy="write 500 (requests) or 60s")
    if options.sweep == "zip":
        raise InvalidInput("an endpoint has no parameters to combine", where="--sweep", remedy="write --sweep rate")
    workload = options.request_workload or USUAL_WORKLOAD
    if not workload.startswith("random"):
        workload = os.path.abspath(os.path.join(options.cwd or "", os.path.expanduser(workload)))
    words = [target.removeprefix(PREFIX), "--model", options.served_model, "--load", options.request_load]
    words += ["--slo", options.objective] if options.objective is not None else []
    words += ["--extra-body", options.extra_body] if options.extra_body is not None else []
    words += ["--sweep"] if options.sweep == "rate" else []
    try:
        read = parse(words)
    except WrongSetting as error:
        raise InvalidInput(str(error), where=error.option or target) from None
    limit_s = options.timeout
    if limit_s is not None:
        limit_s = max(limit_s / 2, min(limit_s * _OWN_SHARE, limit_s - _LEAST_REST_S))
    return read._replace(
        api=options.endpoint_api,
        requests=stop.steps if stop is not None else None,
        seconds=stop.seconds if stop is not None else None,
        workload=workload,
        seed=options.seed,
        key_from=options.key_from or KEY_VARIABLE,
        processes=options.client_processes,
        limit_s=limit_s,
    )
