"""The documentation: Markdown, built by Sphinx without any network."""

import sys
from pathlib import Path

import handgrad

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "handgrad"
author = copyright = "The handgrad authors"  # noqa: A001 - the name Sphinx wants
version = release = handgrad.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "generated"]
exclude_patterns = ["_build", "_ext"]
smartquotes = False  # "quotes" stand in code and in what commands print

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
default_role = "py:obj"
napoleon_google_docstring = False

html_theme = "furo"
html_title = f"handgrad {version}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
