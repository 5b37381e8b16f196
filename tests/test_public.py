"""The public names of handgrad."""

from __future__ import annotations

import pytest

import handgrad


def test_the_list_of_public_names_is_in_order_and_has_no_name_twice() -> None:
    """``__all__`` is what a reader takes for the contents."""
    assert len(set(handgrad.__all__)) == len(handgrad.__all__)
    assert all(hasattr(handgrad, name) for name in handgrad.__all__)


def test_every_class_and_function_at_hand_is_listed() -> None:
    """What can be reached as ``handgrad.name`` is public on purpose."""
    own = {
        name
        for name, value in vars(handgrad).items()
        if callable(value) and not name.startswith("_") and value.__module__.startswith("handgrad.")
    }
    assert own <= set(handgrad.__all__)


@pytest.mark.parametrize("name", handgrad.__all__)
def test_a_public_name_says_what_it_is(name: str) -> None:
    """Every public class and function has a docstring."""
    value = getattr(handgrad, name)
    assert not callable(value) or value.__doc__.strip()
