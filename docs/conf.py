# SPDX-License-Identifier: Apache-2.0
"""Sphinx makes the site from the pages of this directory (make html)."""
import pathlib
import re

_configure = pathlib.Path(__file__).with_name("..") / "configure.ac"
release = re.search(r"AC_INIT\(\[[^]]*\],\s*\[([^]]*)\]", _configure.read_text())[1]
version = release
project = "Tandem"
author = "the Tandem authors"
project_copyright = "2026, the Tandem authors"

extensions = ["myst_parser"]
# Links to headings use the names that code hosting sites give them, too.
myst_heading_anchors = 4
root_doc = "index"
source_suffix = {".md": "markdown"}

html_theme = "furo"
html_title = f"Tandem {release}"
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
