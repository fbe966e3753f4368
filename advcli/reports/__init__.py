"""Reports, made from rows alone: the summary, the comparison table, full reports, and the check of rows against a baseline."""

from .comparison import comparison_table
from .summary import SUMMARY_COLUMNS, primary_metric, summarise
from .write import write_reports

__all__ = ["SUMMARY_COLUMNS", "comparison_table", "primary_metric", "summarise", "write_reports"]
