"""Moments of a training: recorded on the same rows, kept in the run folder, paid for only when asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from handgrad import (
    SGD,
    Adam,
    BinaryCrossEntropy,
    Embedding,
    HalfSquaredError,
    Linear,
    Network,
    ReLU,
    RunError,
    SoftmaxCrossEntropy,
    Standardise,
    Tanh,
    explain,
    train,
)
from handgrad.data import digits, moons
from handgrad.explaining.record import Boundary
from handgrad.explaining.snapshots import (
    GRID,
    Recorder,
    find_over_training,
    measure_boundary,
    take_snapshot,
    with_training,
)
from handgrad.runs import Run, read_snapshots, save_run
from handgrad.training import History

Array = NDArray[Any]
MOONS = moons(rows=210)
DIGITS = digits()


def two_inputs(seed: int = 0) -> Network:
    return Network(
        Standardise(),
        Linear(2, 7),
        Tanh(),
        Linear(7, 2),
        loss=SoftmaxCrossEntropy(),
        seed=seed,
        dtype="float64",
    )


def recorded(network: Network, **more: Any) -> Recorder:
    recorder = Recorder(network, MOONS.x, MOONS.t, epochs=8, moments=5, batch_size=20, **more)
    train(network, MOONS.x, MOONS.t, epochs=8, batch_size=20, engine="reference", after_epoch=recorder)
    return recorder


def test_the_start_the_last_epoch_and_what_lies_between_are_recorded() -> None:
    recorder = recorded(two_inputs())

    assert [(moment.epoch, moment.step) for moment in recorder.snapshots] == [
        (0, 0), (2, 22), (4, 44), (6, 66), (8, 88)
    ]  # fmt: skip


def test_recording_changes_no_weight() -> None:
    watched, alone = two_inputs(), two_inputs()
    recorded(watched, optimiser=Adam())
    train(alone, MOONS.x, MOONS.t, epochs=8, batch_size=20, engine="reference")

    for name, array in alone.arrays.items():
        np.testing.assert_array_equal(watched.arrays[name], array)


def test_a_moment_holds_what_the_network_was_then() -> None:
    network = two_inputs()
    recorder = Recorder(network, MOONS.x, MOONS.t, epochs=1, moments=2)
    x, t = recorder.batch
    before = {name: array.copy() for name, array in network.parameters.items()}
    gradients = network.gradients(x, t)
    train(network, MOONS.x, MOONS.t, epochs=1, engine="reference", after_epoch=recorder)
    first, last = recorder.snapshots

    assert x.shape == (32, 2)
    assert set(first.samples) == set(first.summaries) == {
        *(f"{d}{name}" for d in ("", "d") for name in ("W1", "b1", "W2", "b2", "z1", "a1", "z2")), "h1"
    }  # fmt: skip
    for name in ("W1", "W2"):
        np.testing.assert_allclose(
            np.reshape(first.samples[name].numbers, (-1, before[name].shape[1])), before[name], 1e-5
        )
        np.testing.assert_allclose(
            np.reshape(first.samples[f"d{name}"].numbers, (-1, before[name].shape[1])), gradients[name], 1e-5
        )
    np.testing.assert_allclose(np.reshape(last.samples["W2"].numbers, (7, 2)), network.parameters["W2"], 1e-5)
    assert last.loss < first.loss
    assert first.summaries["a1"].most <= 1
    assert [layer.place for layer in last.health.layers] == ["z1", "a1", "z2"]


@pytest.mark.parametrize("weight", [np.nan, 1e200])
def test_what_is_not_finite_is_left_out_and_can_be_kept(tmp_path: Path, weight: float) -> None:
    network = two_inputs()
    network.parameters["W1"][:] = weight
    network.parameters["W2"][:] = weight

    moment = take_snapshot(network, MOONS.x[:32], MOONS.t[:32], Adam())

    saved(tmp_path, [moment])
    assert read_snapshots(tmp_path) == (moment,)
    measures = [value for layer in moment.health.layers for value in layer.measures.values()]
    assert np.isfinite([moment.loss, *measures]).all()


def test_the_samples_of_a_large_network_stay_small() -> None:
    layers = [layer for _ in range(4) for layer in (Linear(128, 128), ReLU())]
    network = Network(Linear(64, 128), *layers, Linear(128, 10), loss=SoftmaxCrossEntropy())

    moment = take_snapshot(network, DIGITS.x[:32], DIGITS.t[:32])

    assert sum(len(sample.numbers) for sample in moment.samples.values()) <= 8_000


def test_a_training_that_kills_a_layer_is_told_with_the_epoch() -> None:
    layers = [layer for _ in range(6) for layer in (Linear(40, 40), ReLU())]
    network = Network(
        Standardise(), Linear(64, 40), ReLU(), *layers, Linear(40, 10), loss=SoftmaxCrossEntropy()
    )
    recorder = Recorder(network, DIGITS.x, DIGITS.t, epochs=4, moments=5, optimiser=Adam(0.1))
    train(
        network, DIGITS.x, DIGITS.t, epochs=4, optimiser=Adam(0.1), engine="reference", after_epoch=recorder
    )

    found = list(find_over_training(recorder.snapshots))

    assert {finding.code for finding in found} == {"dead-units"}
    assert all(finding.evidence.startswith("Since epoch ") for finding in found)
    assert all("training has carried it there" in finding.cause for finding in found)
    assert all("learning rate ten times lower" in finding.change for finding in found)


def test_a_loss_that_does_not_fall_while_weights_grow_is_told() -> None:
    first, *_, last = recorded(two_inputs()).snapshots
    grown = replace(
        last.health,
        layers=tuple(
            replace(layer, measures={"weight_norm": 9 * layer.measures.get("weight_norm", 0)})
            for layer in last.health.layers
        ),
    )

    assert not list(find_over_training([first, last]))
    assert not list(find_over_training([first, replace(last, health=grown)]))
    (finding,) = find_over_training([first, replace(last, health=grown, loss=2 * first.loss)])
    assert finding.code == "large-updates"
    assert f"{first.loss:.3g} before the first step" in finding.evidence


def test_an_explained_training_carries_its_moments_and_the_health_of_its_learning_rate() -> None:
    network = two_inputs()
    recorder = recorded(network)

    healthy, too_fast = (
        with_training(explain(network, *recorder.batch, optimiser=optimiser), recorder.snapshots)
        for optimiser in (Adam(), SGD(100.0))
    )

    assert healthy.snapshots == tuple(recorder.snapshots)
    assert healthy.health.findings == ()
    assert [finding.code for finding in too_fast.health.findings] == ["large-updates"]


def test_two_classes_divide_the_plane() -> None:
    network = Network(Linear(2, 2), loss=SoftmaxCrossEntropy())
    network.parameters["W1"] = [[1.0, -1.0], [0.0, 0.0]]  # class 0 where the first input is above 0

    boundary = measure_boundary(network, np.array([[-2.0, 5.0], [2.0, 6.0]]))

    assert boundary is not None
    assert boundary.x_range == (-2.4, 2.4)
    assert boundary.y_range == pytest.approx((4.9, 6.1))
    answers = np.reshape(boundary.answers, (GRID, GRID))
    assert (answers[:, : GRID // 2] == 1).all()
    assert (answers[:, GRID // 2 :] == 0).all()


def test_a_regression_gives_its_value_and_the_rows_go_up_from_the_lowest() -> None:
    network = Network(Linear(2, 1), loss=HalfSquaredError())
    network.parameters["W1"] = [[0.0], [1.0]]

    boundary = measure_boundary(network, np.array([[0.0, 0.0], [1.0, 10.0]]))

    assert isinstance(boundary, Boundary)
    np.testing.assert_allclose(
        np.reshape(boundary.answers, (GRID, GRID))[:, 3], np.linspace(-1, 11, GRID), 1e-3
    )


def test_a_yes_or_no_is_one_or_zero() -> None:
    network = Network(Linear(2, 1), loss=BinaryCrossEntropy())

    boundary = measure_boundary(network, MOONS.x)

    assert boundary is not None
    assert set(boundary.answers) == {0.0, 1.0}


@pytest.mark.parametrize(
    "network",
    [Network(Linear(3, 2), loss=SoftmaxCrossEntropy()), Network(Embedding(5, 4), Linear(4, 2), inputs=2)],
    ids=["three inputs", "indices"],
)
def test_other_networks_have_no_boundary(network: Network) -> None:
    assert measure_boundary(network, np.zeros((4, *network.row), int)) is None


def saved(folder: Path, moments: Any) -> None:
    network = two_inputs()
    run = Run(network, "moons", "classification", classes=("0", "1"))
    save_run(folder, run, History("accuracy"), "", moments, overwrite=True)


def test_a_run_keeps_its_moments(tmp_path: Path) -> None:
    moments = recorded(two_inputs()).snapshots
    saved(tmp_path, moments)

    assert list(read_snapshots(tmp_path)) == moments
    assert len((tmp_path / "snapshots.jsonl").read_text().splitlines()) == 5

    saved(tmp_path, [])  # the next run recorded none
    assert read_snapshots(tmp_path) == ()
    assert not (tmp_path / "snapshots.jsonl").exists()


@pytest.mark.parametrize("line", ["{", '{"epoch": 1}', "\xff"])
def test_damaged_moments_are_named_with_their_line(tmp_path: Path, line: str) -> None:
    saved(tmp_path, recorded(two_inputs()).snapshots[:1])
    path = tmp_path / "snapshots.jsonl"
    path.write_bytes(path.read_bytes() + line.encode("latin-1") + b"\n")

    with pytest.raises(RunError, match=r"snapshots\.jsonl:2: damaged"):
        read_snapshots(tmp_path)
