"""Whatever happens to a file, reading it gives what it holds or an error of handgrad's, never another."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .mutations import damage
from .readers import NEED_SCIKIT_LEARN, READERS

NAMES = [
    pytest.param(name, marks=[pytest.mark.peers] if name in NEED_SCIKIT_LEARN else []) for name in READERS
]


@pytest.mark.parametrize("name", NAMES)
def test_the_corpus_is_read(name: str) -> None:
    """The sound file without an error; what was hard before, with one of handgrad's or none."""
    reader = READERS[name]
    for content in reader.sound():
        reader.try_on(content)
    path = reader._place() / reader.file.rpartition("/")[2]
    path.write_bytes(reader.sound()[0])
    reader.read(path)


@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=150)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_damaged_file_is_read_or_refused(name: str, seed: int) -> None:
    """Turned bits, cuts, parts of other files, doubled parts, hard numbers; up to eight of them."""
    reader, chance = READERS[name], random.Random(seed)
    files = reader.sound()
    reader.try_on(damage(chance.choice(files), files, chance))
