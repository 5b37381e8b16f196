"""Links of the built pages: from rules' files to their pages, from a source page to the reference; dead ones are warnings."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def lead_to_pages_of_rules(app: Sphinx, page: str, source: list[str]) -> None:
    """Lead links to a rule's file, where Markdown's readers find it, to its page instead, or to its family's."""
    source[0] = re.sub(
        r"\[(`?)(\w+)\1\]\((?:\.\./)+src/handgrad/rules/\w+\.py\)",
        lambda found: f"[{found[1]}{found[2]}{found[1]}](#{'rule' if found[1] else 'family'}-{found[2]})",
        source[0],
    )


def mend_source_page(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Give a source page's links the names under which objects are documented: not those of the modules that import them."""
    if not page.startswith("_modules/"):
        return
    objects = app.env.domains.python_domain.objects.items()
    anchors = {(each.docname, _within(name)): each.node_id for name, each in objects if not each.aliased}

    def mended(found: re.Match[str]) -> str:
        anchor = anchors.get((found[1].removesuffix(".html").lstrip("./"), _within(found[2])))
        return found[0].replace(f"#{found[2]}", f"#{anchor}") if anchor else ""

    back = r'<a class="viewcode-back" href="([^"#]*)#([^"]*)">[^<]*</a>'
    body = re.sub(back, mended, context["body"])
    context["body"] = re.sub(r'<li><a href="builtins.html">.*?</li>', "", body)


def _within(name: str) -> str:
    """Return an object's name within its module."""
    return re.sub(r"^([a-z_0-9]+\.)*(?=[A-Z]|\w+$)", "", name)


class _Page(HTMLParser):
    """The anchors of a page, and its links."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors, self.links = set[str](), list[str]()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


def check(app: Sphinx, exception: Exception | None) -> None:
    """Warn of links within the pages to files and anchors that are not there."""
    if exception or app.builder.name != "html":
        return
    root = Path(app.outdir).resolve()
    pages = {path: _Page(path) for path in root.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            missing = not target.exists() or (
                parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors
            )
            if missing:
                logger.warning("%s: a dead link: %s", path.relative_to(root), link)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect all three."""
    app.connect("source-read", lead_to_pages_of_rules)
    app.connect("html-page-context", mend_source_page)
    app.connect("build-finished", check)
    return {"parallel_read_safe": True}
