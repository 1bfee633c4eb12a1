"""The report as one HTML file that needs nothing else: no network, no other file."""

from benchwright.report.html.reporter import HtmlReporter

__all__ = ["HtmlReporter"]
