"""The table has a row for every rule with a gradient, and for every update rule."""

from __future__ import annotations

from collections import Counter
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from handgrad import rules
from handgrad.errors import RuleError
from handgrad.layers import OPTIMISERS
from handgrad.rules import RULES, Rule, UpdateRule

from .table import CASES, TABLE, UPDATES


def updates() -> dict[str, UpdateRule]:
    """Return every update rule of handgrad's, by name."""
    return {name: value for name, value in vars(rules).items() if isinstance(value, UpdateRule)}


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


@pytest.mark.parametrize("update", updates().values(), ids=updates())
def test_every_update_rule_has_a_row(update: UpdateRule) -> None:
    """By an optimiser that chooses it, with each of its options away from its default."""
    rows = [row.optimiser for row in UPDATES if row.optimiser.rule is update]
    assert rows, f"tests/rules/table.py: UPDATES has no row of {update.name}"
    for option, usual in update.text.options.items():
        place = f"tests/rules/table.py: no row of {update.name} in UPDATES"
        assert any(getattr(row, option) != usual for row in rows), (
            f"{place} has another {option} than {usual}"
        )


def test_every_optimiser_has_a_row() -> None:
    missing = OPTIMISERS.keys() - {type(row.optimiser).__name__ for row in UPDATES}
    assert not missing, f"tests/rules/table.py: UPDATES has no row of {', '.join(missing)}"


def test_cases_have_ids_that_differ() -> None:
    """A failing test names its rule and options."""
    assert max(Counter(map(str, CASES)).values()) == 1


def test_a_rule_that_its_file_does_not_list_is_named(tmp_path: Path) -> None:
    """Before anything else fails for want of it."""
    file = tmp_path / "trial.py"
    file.write_text(
        "from handgrad.rules.rule import rule\n\n__all__ = []\n\n\n"
        '@rule("... -> ...")\ndef forgotten(z):\n    a = 2 * z\n    return a\n'
    )
    spec = spec_from_file_location("handgrad.rules.trial", file)
    with pytest.raises(RuleError) as caught:
        spec.loader.exec_module(module_from_spec(spec))
    assert caught.value.problem.endswith("trial.py:7): forgotten is not in __all__")
    assert caught.value.fix == "add it to the list at the top of the file"
    assert "forgotten" not in RULES
