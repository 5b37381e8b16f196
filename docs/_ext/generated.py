"""The directive ``generated``: a part of a page that is made from the code when the page is built.

```{generated} rules losses
```
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import pages
from docutils import nodes
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
        for path in (Path(pages.__file__), *Path(handgrad.__file__).parent.rglob("*.py")):
            self.env.note_dependency(str(path))
        return self.parse_text_to_nodes(pages.generate(*self.arguments), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
