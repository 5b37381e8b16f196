"""What is made from the code when the documentation is built: parts of pages, and the pages of the rules.

```{generated} settings data
```
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pages
from docutils import nodes
from families import families, rules_of
from rule_pages import rule_page
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import handgrad


class Generated(SphinxDirective):
    """Puts what `pages.generate` returns in its place."""

    required_arguments = 1
    optional_arguments = 20
    has_content = False
    option_spec: ClassVar[dict[str, Any]] = {}

    def run(self) -> list[nodes.Node]:
        """Write the text and have it parsed as part of the page."""
        for path in (
            *Path(pages.__file__).parent.glob("*.py"),
            *Path(handgrad.__file__).parent.rglob("*.py"),
        ):
            self.env.note_dependency(str(path))
        return self.parse_text_to_nodes(pages.generate(*self.arguments), allow_section_headings=True)


def write_rule_pages(app: Sphinx) -> None:
    """Write ``rules/NAME.md`` for each rule, where it is not written so already, and remove those of rules that are gone."""
    folder = Path(app.srcdir) / "rules"
    texts = {rule.name: rule_page(rule) + "\n" for family in families() for rule in rules_of(family)}
    for path in folder.glob("*.md"):
        if path.stem not in (*texts, "index"):
            path.unlink()
    for name, text in texts.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and what is done before a build."""
    app.connect("builder-inited", write_rule_pages)
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
