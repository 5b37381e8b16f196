"""Products of sequences in tiles are the same products, whatever their sizes, and whoever does their parts."""

from __future__ import annotations

import numpy as np
import pytest

from handgrad import Linear, MeanSquaredError, Network
from handgrad.engines.compiled import CompiledEngine, tiled_products
from handgrad.engines.compiled.blas import find_blas
from handgrad.engines.compiled.placement import Stack
from handgrad.engines.compiled.tiled_products import tiled
from handgrad.program.lowered import NONE, Extent, LoweredValue, View

from .agreement import BOUNDS, check_case
from .test_compiled_agreement import NETWORKS

OF_SEQUENCES = [name for name in NETWORKS if "times" in name or "rank 3" in name]


@pytest.fixture
def tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do all products of sequences in tiles that can be, small ones too."""
    monkeypatch.delenv("HANDGRAD_BLAS", raising=False)
    monkeypatch.setattr(tiled_products, "FEWEST", 1)
    monkeypatch.setattr(tiled_products, "TIMES", 2)
    monkeypatch.setattr(tiled_products, "BLOCKS", (32, 8, 4, 2))
    monkeypatch.setattr(tiled_products, "ROWS", 7)
    monkeypatch.setattr(tiled_products, "LANES", {"float": 1, "double": 1})


@pytest.mark.parametrize(
    ("name", "dtype"),
    [(n, dtype) for n in OF_SEQUENCES for dtype in BOUNDS if dtype == "float32" or "rank 3" not in n],
)
@pytest.mark.usefixtures("tiles")
def test_networks_of_sequences_agree(name: str, dtype: str) -> None:
    check_case(NETWORKS[name], dtype)


def stack(m: int, k: int, columns: int, *transposed: bool) -> Stack:
    """Return a product of two matrices, as a plan has it."""
    value = LoweredValue("memory", (), (), "float")
    leading = (m if transposed[0] else k, k if transposed[1] else columns, columns)
    views = (View(value, NONE, ()),) * 3
    sizes = (Extent(m), Extent(columns), Extent(k))
    return Stack(sizes, views, (transposed[0], transposed[1]), tuple(map(Extent, leading)), ())  # type: ignore[arg-type]


def test_only_products_that_a_cache_holds_are_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    """And large ones: of few multiplications BLAS has them sooner than code is made."""
    monkeypatch.delenv("HANDGRAD_BLAS", raising=False)
    assert tiled(stack(2048, 128, 512, False, False), 1, "float") is not None
    assert tiled(stack(2048, 1024, 1024, False, False), 1, "float") is None
    assert tiled(stack(64, 16, 16, False, False), 1, "float") is None
    assert tiled(stack(2048, 128, 10, False, False), 1, "float") is None
    assert tiled(stack(128, 2047, 512, True, False), 1, "float") is None


def test_rows_that_are_left_are_a_piece_of_their_own() -> None:
    """With the same code for the others, however many there are."""
    found = [tuple(tiled_products._rows(m, 512, 128, (128, 512, 512))) for m in (150, 214)]
    assert [[(piece.blocks, piece.start) for piece in each] for each in found] == [
        [(2, (0, 0)), (1, (128 * 128, 128 * 512))],
        [(3, (0, 0)), (1, (192 * 128, 192 * 512))],
    ]
    for one, other in zip(*found, strict=True):
        assert one.contractions == other.contractions


@pytest.mark.parametrize("choice", ["numpy", "mkl"])
def test_a_library_that_the_user_chooses_computes_every_product(
    choice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDGRAD_BLAS", choice)
    assert tiled(stack(2048, 128, 512, False, False), 1, "float") is None


def test_a_training_records_what_its_sequences_are_multiplied_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two round differently: a training that is resumed otherwise has a notice."""
    network = Network(Linear(2, 3), loss=MeanSquaredError())
    for choice, products in (("auto", "tiles"), ("numpy", "BLAS")):
        monkeypatch.setenv("HANDGRAD_BLAS", choice)
        bound = CompiledEngine().bind(network.program(), network.arrays)
        assert bound.facts["sequence_products"] == products


def test_blas_multiplies() -> None:
    blas = find_blas()
    assert blas is not None
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(5, 3)).astype("f"), rng.normal(size=(3, 7)).astype("f")
    np.testing.assert_allclose(blas.multiply(a, b), a @ b, rtol=1e-6)
