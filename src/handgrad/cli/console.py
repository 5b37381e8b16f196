"""What commands print: a small table for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click


def show_results(results: Mapping[str, Any], *, as_json: bool) -> None:
    """Print names and values, as a table or as one JSON object."""
    if as_json:
        click.echo(json.dumps(results))
        return
    width = max(map(len, results))
    for name, value in results.items():
        if value is None:
            continue
        shown = (
            f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else value
        )
        click.echo(f"  {click.style(name.replace('_', ' ').ljust(width), dim=True)}  {shown}")
