"""A fitted model as one HTML file to look at in a browser; needs Jinja2, which the extra ``app`` brings."""

from multicause.app.report.page import write_report

__all__ = ["write_report"]
