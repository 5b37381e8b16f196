"""Weight files that are damaged, or made to do harm, are refused, and nothing changes."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handgrad import BatchNorm, DataError, Linear, Network, RunError
from handgrad.interop import load_torch_weights, save_torch_weights


def header(path: Path, text: str, data: bytes = b"", length: int | None = None) -> None:
    """Write a file with a header of one's own."""
    said = text.encode()
    path.write_bytes(struct.pack("<Q", len(said) if length is None else length) + said + data)


def entry(**more: Any) -> str:
    return json.dumps({"0.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24], **more}})


HOSTILE: dict[str, tuple[str, int | None]] = {
    "a header longer than the file": (entry(), 2**40),
    "a header of no end": (entry(), 2**63),
    "no JSON": ("{", None),
    "not an object": ("[1, 2]", None),
    "a size that is NaN": (entry().replace("[2, 3]", "[NaN, 3]"), None),
    "a size that is text": (entry(shape=["2", 3]), None),
    "a size below 0": (entry(shape=[-2, 3]), None),
    "sizes whose product overflows": (entry(shape=[2**62, 8]), None),
    "a petabyte": (entry(shape=[2**40, 256], data_offsets=[0, 2**50]), None),
    "offsets past the end": (entry(data_offsets=[0, 2**33]), None),
    "offsets the wrong way round": (entry(data_offsets=[24, 0]), None),
    "an unknown type": (entry(dtype="F31"), None),
    "nested deeply": ("[" * 100_000, None),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_headers_are_refused(tmp_path: Path, kind: str) -> None:
    text, length = HOSTILE[kind]
    header(tmp_path / "w", text, bytes(24), length)
    with pytest.raises(DataError, match="w: damaged, or no safetensors file: "):
        load_torch_weights(Network(Linear(3, 2)), tmp_path / "w")


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nothing: No such file"):
        load_torch_weights(Network(Linear(3, 2)), tmp_path / "nothing")
    with pytest.raises(DataError, match=r"Is a directory"):
        load_torch_weights(Network(Linear(3, 2)), tmp_path)
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty: damaged, or no safetensors file: "):
        load_torch_weights(Network(Linear(3, 2)), tmp_path / "empty")
    with pytest.raises(RunError, match="cannot be written"):
        save_torch_weights(Network(Linear(3, 2)), tmp_path / "empty" / "w")


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_whatever_happens_to_a_file_it_is_read_or_refused(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Nothing but a `DataError`, and then not one number is changed."""
    folder = tmp_path_factory.mktemp("w")
    path, made = folder / "w", Network(Linear(3, 2), BatchNorm(), seed=4)
    save_torch_weights(Network(Linear(3, 2), BatchNorm()), path)
    content = path.read_bytes()
    start = data.draw(st.integers(0, len(content)), label="start")
    removed = data.draw(st.sampled_from([0, 1, 4, len(content)]), label="bytes removed")
    path.write_bytes(
        content[:start] + data.draw(st.binary(max_size=4), label="put there") + content[start + removed :]
    )
    before = {name: array.copy() for name, array in made.arrays.items()}
    with suppress(DataError):
        load_torch_weights(made, path)
        return
    assert all(made.arrays[name].tobytes() == array.tobytes() for name, array in before.items())
