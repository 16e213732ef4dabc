"""Settings of Sphinx for the documentation: `make docs` builds it into build/docs."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from sphinx.ext.autodoc.mock import _MockObject

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS / "_extensions"))

from inventories import write_inventories  # noqa: E402

_project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

project = _project["name"]
author = _project["authors"][0]["name"]
copyright = author  # noqa: A001
release = version = _project["version"]

extensions = [
    "default_role",
    "live_pages",
    "myst_parser",
    "numpydoc",
    "repository_links",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "sphinx_design",
]
default_role = "obj"
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
templates_path = ["_templates"]
exclude_patterns = ["images/*.py", "images/gallery/*.json"]
nitpicky = True
# Where files of the repository are that are not pages; pyproject.toml alone names it.
repository = _project["urls"]["Repository"]


html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["images", "styles"]
html_css_files = ["site.css"]
# Pages of the first level without pages below them, whose list on the left would be empty.
html_sidebars = {name: [] for name in ("benchmarks", "comparison", "differences", "gallery")}
# Of an example with prompts, the button copies the code alone; what a command prints has none.
copybutton_selector = "div:not(.highlight-output) > div.highlight pre"
copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True
# The colours that the reader's system has, until the reader chooses; without it the theme complains in the browser.
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_search_scorer = str(DOCS / "styles" / "scorer.js")
# The search would read each page that it found, which a browser forbids for pages on the disk.
html_show_search_summary = False
html_theme_options = {
    "logo": {"text": project},
    "use_edit_page_button": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "collapse_navigation": True,
    "navigation_depth": 2,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
}

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# Types stand in the docstrings, with shapes and units; signatures show names and defaults.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
# The list at the right has no room for the name of the class before each method.
toc_object_entries_show_parents = "hide"
autodoc_mock_imports = [
    "bertopic",
    "chromadb",
    "duckdb",
    "haystack",
    "keybert",
    "lancedb",
    "langchain_core",
    "llama_index",
    "mteb",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "scipy",
    "sklearn",
    "torch",
    "transformers",
]
# Modules for frameworks enter their classes into tables of the framework, which the stand-in for it then is.
_MockObject.__setitem__ = lambda self, name, value: None
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
# Types in docstrings are prose with shapes; only these words are links.
numpydoc_xref_ignore = "all"
numpydoc_xref_aliases = {
    name: f":class:`{name}`" for name in ("bool", "bytes", "dict", "float", "int", "list", "str", "tuple")
}

intersphinx_mapping = write_inventories(DOCS / "inventories", ROOT / "build" / "inventories")
intersphinx_timeout = 0
