"""Tables, figures and pages, from rows."""

from .choice import Choice
from .comparison import comparison_table
from .published_numbers import published_table
from .summary import SUMMARY_COLUMNS, primary_metric, summarise
from .write import write_reports

__all__ = ["SUMMARY_COLUMNS", "Choice", "comparison_table", "primary_metric", "published_table", "summarise", "write_reports"]
