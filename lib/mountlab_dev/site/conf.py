"""Settings of Sphinx for the site that `make docs` builds."""

from __future__ import annotations

from importlib.metadata import version as version_of

project = "Mountlab"
author = "The Mountlab authors"
version = release = version_of("mountlab")
extensions = ["myst_parser"]
root_doc = "index"

myst_enable_extensions = ["colon_fence", "smartquotes"]
myst_heading_anchors = 6
"""Headings have the anchors that forges give them, so that one link serves both."""

html_theme = "furo"
html_title = "Mountlab"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False
"""It would be fetched, which browsers forbid for files."""
html_last_updated_fmt = None
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
