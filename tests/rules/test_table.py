"""The table has a row for every rule with a gradient."""

from __future__ import annotations

from collections import Counter

from handgrad.rules import RULES

from .table import CASES, TABLE


def test_every_rule_with_a_gradient_has_one_row() -> None:
    """A rule of handgrad that is not constant stands in the table, once."""
    own = {rule.name for rule in RULES.values() if not rule.constant}
    assert Counter(row.rule.name for row in TABLE) == dict.fromkeys(own, 1)


def test_every_option_is_varied() -> None:
    """A row gives each option of its rule two values or more, so that no test can pass without reading it."""
    for row in TABLE:
        for option in row.rule.forward.options:
            assert len({options[option] for options in row.options}) > 1, f"{row.rule.name}: {option}"


def test_cases_have_ids_that_differ() -> None:
    """A failing test names its rule and options."""
    assert max(Counter(map(str, CASES)).values()) == 1
