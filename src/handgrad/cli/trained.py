"""Commands on a trained network: ``handgrad evaluate``, ``predict`` and ``export``."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from handgrad.cli.console import show_results
from handgrad.cli.evaluation import Evaluation
from handgrad.cli.options import FOLDER, Experiment, OutputFile, json_option, names_in, read_data_settings
from handgrad.data import Dataset, load
from handgrad.data.columns import Column
from handgrad.data.parquet_table import parquet_bytes
from handgrad.data.series import windows
from handgrad.data.sources import features_and_columns, takes
from handgrad.engines import Epoch, NonFiniteLossError, ReferenceEngine
from handgrad.engines.engine import evaluate, rows_at_a_time
from handgrad.errors import DataError, RunError
from handgrad.files import write_output
from handgrad.runs import Run, load_run, match_classes, match_features, target_names
from handgrad.training.metrics import mean_loss


@click.command(name="evaluate")
@click.argument("run", type=FOLDER)
@click.argument("source", required=False)
@click.option(
    "--target", metavar="NAME", help="Column of SOURCE, or .npy file, with the targets, when it is another."
)
@click.option("--picture", type=OutputFile(".png"), help="Draw what is right and wrong into a PNG file.")
@json_option("Print the results as JSON, with the recall of each class, the ROC curve and the calibration.")
def evaluate_command(
    run: Path, source: str | None, target: str | None, picture: Path | None, as_json: bool
) -> None:
    """Score a trained network on rows with known targets.

    RUN is a folder that `handgrad train` wrote. Without SOURCE, the test rows of its own data are used; else
    all rows of SOURCE, which is as for `handgrad train`.

    \b
    handgrad evaluate runs/digits
    handgrad evaluate runs/houses newer.csv --json
    handgrad evaluate runs/houses newer.csv --picture newer.png
    """
    trained = load_run(run)
    if source is None:
        experiment = Experiment(read_data_settings(run))
        dataset, rows = experiment.dataset, experiment.rows.test
        if not len(rows):
            raise DataError(f"{run}: there are no test rows", fix="name rows to score on")
    else:
        own = trained.target if takes(source, "column") else None  # other sources have their own targets
        columns = _columns(trained) if takes(source, "column") else ()
        dataset = load(
            source,
            target=target or own,
            task=trained.task,
            columns=columns,
            context=trained.context,
            characters=trained.entries,
        )
        rows = np.arange(len(dataset))
    loss, evaluation = _score(trained, dataset, rows)
    if picture is not None:
        write_output(picture, evaluation.picture(f"{dataset.name}: {len(rows):,} rows"))
    results = {"rows": len(rows), "loss": loss}
    if as_json:
        warning = evaluation.warning and evaluation.warning + evaluation.advice
        show_results({**results, **evaluation.scores, "warning": warning}, as_json=True)
        return
    show_results({**results, **evaluation.lines}, as_json=False)
    evaluation.show()


def _columns(run: Run) -> Sequence[str | Column]:
    """Return what is done to columns; older runs have numbers only, and their names."""
    return run.columns or run.feature_names


def _score(run: Run, dataset: Dataset, rows: Any) -> tuple[float, Evaluation]:
    """Return the loss and the scores of some rows of a data set."""
    network = run.network
    assert network.loss is not None
    x = network.check_rows(match_features(run, dataset))
    t = network.check_targets(match_classes(run, dataset), len(dataset))
    program = network.loss_program()
    bound = ReferenceEngine().bind(program, network.arrays)
    try:
        total, count, prediction = evaluate(bound, Epoch({"x": x, "t": t}, rows, rows_at_a_time(program)))
    except NonFiniteLossError:
        raise DataError(
            f"{dataset.name}: the loss of these rows is not finite",
            given=f"the largest number of x is {abs(x[rows]).max():.3g}, of the targets {abs(t[rows]).max():.3g}",
            fix="look for values far from those that the network was trained on",
        ) from None
    names = target_names(run, prediction.shape[-1])
    return mean_loss(total, count), Evaluation.of(network.loss, prediction, t[rows], run.classes, names)


@click.command(name="predict")
@click.argument("run", type=FOLDER)
@click.argument("source")
@click.option(
    "--out",
    type=OutputFile(".csv", ".json", ".jsonl", ".parquet"),
    help="A file, Parquet if it is named .parquet; else standard output, as CSV.",
)
@click.option("--keep", metavar="NAMES", help="Columns of SOURCE before the predictions, as a,b, or all.")
@click.option("--probabilities", is_flag=True, help="A column for the probability of each class.")
@json_option("One JSON object a row instead of CSV.")
def predict_command(
    run: Path, source: str, out: Path | None, keep: str | None, probabilities: bool, as_json: bool
) -> None:
    """Predict with a trained network for new rows.

    RUN is a folder that `handgrad train` wrote. SOURCE holds rows: a file as for `handgrad train`, of a table the
    columns of the training (others are ignored), of an .npz file its x; an IDX file; or an image or a folder of images.
    Of a time series, the answer to each window is the next row's target, the last one that of the row to come.

    \b
    handgrad predict runs/houses new.csv --out answers.csv
    handgrad predict runs/pets new.csv --keep id --probabilities
    """
    trained = load_run(run)
    if as_json and _is_parquet(out):
        raise click.UsageError("--json is text, and --out names a Parquet file.")
    if out is not None and out.exists() and out.resolve() == Path(source).resolve():
        raise click.UsageError("--out names the file of the rows themselves: give another name.")
    if trained.entries:
        raise RunError(
            f"{run}: was trained on a text, and does not answer row by row", fix=f"handgrad generate {run}"
        )
    names = None if keep == "all" else names_in(keep, "--keep") if keep else ()
    x, kept = features_and_columns(source, _columns(trained), names)
    if trained.context:
        x = windows(source, x, trained.context)
    if probabilities and not trained.classes:
        raise click.UsageError("--probabilities is for classes, and this run predicts values.")
    answers = _answers(trained, trained.network.predict(x), probabilities=probabilities)
    latest = (trained.context or 1) - 1  # a window's answer is beside its last row
    answers = _beside({column.name: column.as_held()[latest:] for column in kept}, answers)
    content = parquet_bytes(answers) if _is_parquet(out) else _text(answers, as_json=as_json)
    if out is None:
        click.echo(content, nl=False)
    else:
        write_output(out, content)
        click.echo(f"wrote {len(answers):,} answers to {out}", err=True)


def _is_parquet(out: Path | None) -> bool:
    return out is not None and out.suffix.lower() == ".parquet"


def _beside(kept: dict[str, list[Any]], answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Put columns before the predictions; a prediction with the name of one is called predicted."""
    names = {name: f"predicted {name}" if name in kept else name for name in answers[0]}
    rows = zip(*kept.values(), strict=True) if kept else ((),) * len(answers)
    return [
        dict(zip(kept, row, strict=True)) | {names[name]: value for name, value in answer.items()}
        for row, answer in zip(rows, answers, strict=True)
    ]


def _text(answers: list[dict[str, Any]], *, as_json: bool) -> str:
    file = io.StringIO()
    if as_json:
        file.writelines(json.dumps(row) + "\n" for row in answers)
    else:
        writer = csv.DictWriter(file, list(answers[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(answers)
    return file.getvalue()


def _answers(run: Run, prediction: NDArray[Any], *, probabilities: bool) -> list[dict[str, Any]]:
    """Return one row of named values for each prediction."""
    if run.task == "regression":
        names = target_names(run, prediction.shape[-1])
        return [dict(zip(names, map(float, row), strict=True)) for row in prediction]
    if prediction.shape[-1] == 1:  # the probability of the second of two classes
        prediction = np.concatenate([1 - prediction, prediction], axis=-1)
    answers = []
    for k, row in zip(prediction.argmax(axis=-1), prediction.tolist(), strict=True):
        answer = {"answer": run.classes[k], "probability": round(row[k], 6)}
        if probabilities:
            each = zip(run.classes, row, strict=True)
            answer |= {f"probability of {name}": round(value, 6) for name, value in each}
        answers.append(answer)
    return answers


@click.command(name="export")
@click.argument("run", type=FOLDER)
@click.option("--onnx", type=OutputFile(".onnx"), help="Write the network as an ONNX file.")
@click.option(
    "--torch",
    type=OutputFile(".safetensors"),
    help="Write the weights as safetensors, named as PyTorch names them.",
)
@click.option(
    "--with-standardisation/--without-standardisation",
    "standardise",
    default=True,
    help="Whether the ONNX file takes rows as they come, or standardised ones [with].",
)
@click.option(
    "--prediction", is_flag=True, help="Let the ONNX file answer as `handgrad predict`, not in logits."
)
def export_command(
    run: Path, onnx: Path | None, torch: Path | None, standardise: bool, prediction: bool
) -> None:
    """Write a trained network for other libraries.

    RUN is a folder that `handgrad train` wrote. The ONNX file holds the names of classes and columns too, as JSON in
    its metadata.

    \b
    handgrad export runs/digits --onnx digits.onnx --prediction
    handgrad export runs/digits --torch digits.safetensors
    """
    from handgrad.interop import save_torch_weights, to_onnx

    if onnx is None and torch is None:
        raise click.UsageError("Nothing to write: give --onnx FILE or --torch FILE.")
    if onnx is None and (prediction or not standardise):
        raise click.UsageError("--prediction and --without-standardisation are for --onnx FILE.")
    trained = load_run(run)
    if onnx is not None:
        names = {"classes": trained.classes, "feature_names": trained.feature_names}
        metadata = {key: json.dumps(value) for key, value in names.items() if value}
        to_onnx(trained.network, onnx, prediction=prediction, standardise=standardise, metadata=metadata)
        click.echo(f"wrote {onnx}")
    if torch is not None:
        save_torch_weights(trained.network, torch)
        click.echo(f"wrote {torch}")
