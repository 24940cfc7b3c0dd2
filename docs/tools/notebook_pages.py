"""Notebooks as pages of the site: HTML with the outputs that they are kept with."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import DictLoader
from nbconvert import HTMLExporter

# Without the scripts that nbconvert's own template takes from elsewhere (RequireJS, MathJax and
# Mermaid), none of which the notebooks need: a page asks for nothing outside itself.
_OFFLINE = """
{%- extends 'lab/index.html.j2' -%}
{%- block html_head_js -%}<link rel="icon" href="data:,">{%- endblock -%}
{%- block html_head_js_mathjax -%}{%- endblock -%}
{%- block html_head_js_mermaidjs -%}{%- endblock -%}
"""
_LINK = re.compile(r'href="([\w/]+)\.ipynb"')


def notebook_page(path: Path) -> str:
    """The notebook as one HTML file, whose links to other notebooks lead to their pages."""
    loader = DictLoader({"offline.html.j2": _OFFLINE})
    exporter = HTMLExporter(template_file="offline.html.j2", extra_loaders=[loader])
    exporter.exclude_input_prompt = exporter.exclude_output_prompt = True
    html, _ = exporter.from_filename(str(path))
    return _LINK.sub(r'href="\1.html"', html)
