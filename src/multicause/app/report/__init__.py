"""Report of a fitted model as one HTML file; needs Jinja2, which the extra ``app`` installs."""

from multicause.app.report.page import write_report

__all__ = ["write_report"]
