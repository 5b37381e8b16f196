"""The documentation: Markdown, built by Sphinx without any network."""

import sys
from pathlib import Path

from sphinx.ext.napoleon.docstring import GoogleDocstring

import handgrad

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "handgrad"
author = copyright = "The handgrad authors"  # noqa: A001 - the name Sphinx wants
version = release = handgrad.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "generated",
    "links",
]
exclude_patterns = ["_build", "_ext"]
smartquotes_action = "D"  # dashes, but no quotes: they stand in what is typed

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings say more: "rows (n, …)" rather than numpy.ndarray
default_role = "any"
# The type of a documented setting may hold its choices and its default, which are no classes.
nitpick_ignore_regex = [("py:class", r"default .*|\".*\"")]
napoleon_google_docstring = False
napoleon_attr_annotations = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Attributes"]  # a list of names, rather than an object each

# The docstring of a property is a sentence: a colon in it does not part a type from its text.
GoogleDocstring._parse_attribute_docstring = GoogleDocstring._consume_to_end

html_theme = "furo"
html_title = f"handgrad {version}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
