"""How Sphinx builds the site from the pages of docs, the docstrings and the gallery: `make docs`."""

import warnings
from pathlib import Path

import advcli

DOCS = Path(__file__).resolve().parents[1]

project, author, release = "advcli", "the advcli developers", advcli.__version__
copyright = "the advcli developers"
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
root_doc = "site/index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["gallery/*", "site/templates/**"]

# ---- the pages as they are ----------------------------------------------------------------------------------------------------
myst_heading_anchors = 4
# The configuration of the gallery holds what cannot be kept between builds.
suppress_warnings = ["config.cache"]

# ---- docstrings -----------------------------------------------------------------------------------------------------------------
autodoc_typehints = "none"
autodoc_member_order = "groupwise"
autosummary_generate = True
templates_path = [str(DOCS / "site" / "templates")]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
default_role = "code"
# Every public name has a summary, and documents only what it takes, in the standard's sections and their order.
numpydoc_validation_checks = {"GL03", "GL06", "GL07", "GL08", "SS01", "PR02", "PR06", "PR10", "RT03", "YD01"}
# An __init__ is documented by its class; two classes say that all else is as in the one that they derive from, which is validated.
numpydoc_validation_exclude = {r"__init__$", r"^advcli\.(Ordinal)?AdversarialClassifier$"}

# ---- the gallery ----------------------------------------------------------------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": str(DOCS / "gallery"),
    "gallery_dirs": "site/gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "reset_modules": ("matplotlib",),
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# ---- how it looks ---------------------------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "advcli"
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navigation_depth": 2,
}


def lead_to_the_start(app, error):
    """Write the page at the root, which leads to the start."""
    if error is None:
        Path(app.outdir, "index.html").write_text(
            '<!DOCTYPE html><meta charset="utf-8"><title>advcli</title>'
            '<meta http-equiv="refresh" content="0; url=site/index.html"><a href="site/index.html">advcli</a>',
            encoding="utf-8",
        )


def keep_bars(app, what, name, obj, options, lines):
    """Escape bars of formulas, |theta|^2, which are no substitutions here; those within double backticks stand for themselves."""
    for at, line in enumerate(lines):
        parts = line.split("``")
        lines[at] = "``".join(part if number % 2 else part.replace("|", r"\|") for number, part in enumerate(parts))


def setup(app):
    """Give the fences of tables and rows a lexer, and the site a page at its root."""
    from pygments.lexers.data import JsonLexer
    from pygments.lexers.special import TextLexer

    app.add_lexer("csv", TextLexer)
    app.add_lexer("jsonl", JsonLexer)
    app.connect("autodoc-process-docstring", keep_bars, priority=900)
    app.connect("build-finished", lead_to_the_start)
