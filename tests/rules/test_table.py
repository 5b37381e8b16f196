"""The table has a row for every rule with a gradient."""

from __future__ import annotations

from collections import Counter

import pytest

from handgrad.rules import RULES, Rule

from .table import CASES, TABLE


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_rule_with_a_gradient_has_one_row(rule: Rule) -> None:
    """A rule of handgrad that is not constant stands in the table, once."""
    rows = sum(row.rule is rule for row in TABLE)
    assert rows == (not rule.constant), f"tests/rules/table.py: TABLE has {rows} rows of {rule.name}"


def test_every_option_is_varied() -> None:
    """A row gives each option of its rule two values or more, so that no test can pass without reading it."""
    for row in TABLE:
        for option in row.rule.forward.options:
            values = {options.get(option) for options in row.options}
            place = f"tests/rules/table.py: the row of {row.rule.name}"
            assert len(values - {None}) > 1, f"{place} does not give its option {option} two values"


def test_cases_have_ids_that_differ() -> None:
    """A failing test names its rule and options."""
    assert max(Counter(map(str, CASES)).values()) == 1
