"""One line for each metric, for other programs to read: `bw report --format plain`."""

from __future__ import annotations

from benchwright.report.base import Report


class PlainReporter:
    """`benchmark metric value unit`, separated by tabs; a benchmark without a number has its status."""

    name = "plain"

    def render(self, report: Report) -> str:
        lines = []
        for result in report.run.results:
            name = result.benchmark.name
            summaries = report.summaries.get(name, ())
            lines += [f"{name}\t{s.metric}\t{s.value}\t{s.unit or ''}" for s in summaries]
            if not summaries:
                lines.append(f"{name}\t{result.status.value}\t\t")
        return "\n".join(lines) + "\n"
