"""How a report is written down: a document, Markdown, LaTeX, a page."""
