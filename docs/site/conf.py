"""How Sphinx builds the site from the pages of docs, the docstrings and the gallery: `make docs`."""

import runpy
import tomllib
import warnings
from importlib.util import find_spec
from pathlib import Path

from docutils import nodes
from sphinx.pycode import ModuleAnalyzer
from sphinx.transforms import SphinxTransform

import advcli

DOCS = Path(__file__).resolve().parents[1]
REPOSITORY = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Repository"]
THEMES = runpy.run_path(str(DOCS / "themes.py"))
MATHJAX = Path(next(iter(find_spec("sphinx-mathjax-offline").submodule_search_locations)), "static", "mathjax", "tex-svg.js")

project, author, release = "advcli", "the advcli developers", advcli.__version__
copyright = "the advcli developers"
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinx_llm.txt",
]
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["gallery/*", "site/templates/**"]

# ---- the pages as they are ----------------------------------------------------------------------------------------------------
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
# One file, without fonts: formulas are drawn as SVG, and no page asks the network.
mathjax_path = MATHJAX.name
mathjax3_config = {"svg": {"fontCache": "global"}, "options": {"enableMenu": False}}
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
    "image_scrapers": (THEMES["both_inks"],),
    "gallery_dirs": "site/gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "reset_modules": ("matplotlib", THEMES["look_of_reports"]),
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# ---- for programs ---------------------------------------------------------------------------------------------------------------
llms_txt_description = (
    "Multiclass classifiers that train on the cost they are evaluated on, a command line that compares methods, certified fits."
)
# Types of parameters and the mark of keyword-only ones have no Markdown of their own; their text is kept.
llms_txt_suppress_unknown_node_warnings = ["classifier", "abbreviation"]

# ---- how it looks ---------------------------------------------------------------------------------------------------------------
html_theme = "pydata_sphinx_theme"
html_title = "advcli"
html_favicon = "static/logo.svg"
html_static_path = ["static", str(MATHJAX)]
html_css_files = ["site.css"]
html_context = {
    "default_mode": "auto",
    "github_user": REPOSITORY.split("/")[-2],
    "github_repo": REPOSITORY.split("/")[-1],
    "github_version": "main",
    "doc_path": "docs",
}
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "site/gallery/**": []}
html_theme_options = {
    "logo": {"text": "advcli", "image_light": "static/logo.svg", "image_dark": "static/logo.svg"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "navigation_depth": 4,
    "show_nav_level": 1,
    "show_prev_next": True,
    "use_edit_page_button": True,
    "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    "footer_start": ["version"],
    "footer_end": ["licence"],
}


def own_words(app, what, name, obj, options, lines):
    """Document the constant by the words below it: Python knows of a text only what texts are."""
    if name == "advcli.ABSTAIN":
        lines[:] = ModuleAnalyzer.for_module("advcli.losses.matrices").find_attr_docs()["", "ABSTAIN"]


def keep_bars(app, what, name, obj, options, lines):
    """Escape bars of formulas, |theta|^2, which are not substitutions here; bars within double backticks need no escape."""
    for at, line in enumerate(lines):
        parts = line.split("``")
        lines[at] = "``".join(part if number % 2 else part.replace("|", r"\|") for number, part in enumerate(parts))


class BothInks(SphinxTransform):
    """Add the picture for dark ground to that for light ground, where there is one; the theme shows one of them."""

    default_priority = 200

    def apply(self):
        """Look for NAME-dark.svg next to every NAME.svg; the thumbnail of an example is its first picture."""
        for light in list(self.document.findall(nodes.image)):
            stem, ending = light["uri"].replace("/thumb/", "/").replace("_thumb.", "_001.").rsplit(".", 1)
            uri = f"{stem}{THEMES['DARK']}.{ending}"
            if "://" in uri or not Path(self.env.relfn2path(uri, self.env.docname)[1]).is_file():
                continue
            dark = light.deepcopy()
            dark["uri"] = uri
            dark["classes"].append("only-dark")
            light["classes"].append("only-light")
            light.parent.insert(light.parent.index(light) + 1, dark)


def setup(app):
    """Add what the pages need: lexers for the fences of tables and rows, and both inks of pictures."""
    from pygments.lexers.data import JsonLexer
    from pygments.lexers.special import TextLexer

    app.add_lexer("csv", TextLexer)
    app.add_lexer("jsonl", JsonLexer)
    app.add_transform(BothInks)
    app.connect("autodoc-process-docstring", own_words, priority=800)
    app.connect("autodoc-process-docstring", keep_bars, priority=900)
