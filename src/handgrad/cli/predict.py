"""``handgrad predict``."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from handgrad.cli.options import FILE, FOLDER, json_option
from handgrad.data import load_features
from handgrad.files import write_file
from handgrad.runs import Run, load_run


@click.command(name="predict")
@click.argument("run", type=FOLDER)
@click.argument("source")
@click.option("--out", type=FILE, help="A CSV file; else standard output.")
@json_option("One JSON object a row instead of CSV.")
def command(run: Path, source: str, out: Path | None, as_json: bool) -> None:
    """Predict with a trained network for new rows.

    RUN is a folder that `handgrad train` wrote. SOURCE holds rows: a file as for `handgrad train`, of a table the
    columns of the training (others are ignored), of an .npz file its x; or an IDX file.

    \b
    handgrad predict runs/houses new.csv --out answers.csv
    """
    trained = load_run(run)
    x = load_features(source, trained.feature_names)
    answers = _answers(trained, trained.network.predict(x))
    text = "".join(json.dumps(row) + "\n" for row in answers) if as_json else _table(answers)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_file(out, text)
        click.echo(f"wrote {len(answers):,} answers to {out}", err=True)


def _answers(run: Run, prediction: NDArray[Any]) -> list[dict[str, Any]]:
    """Return one row of named values for each prediction."""
    if run.task == "regression":
        names = run.target if isinstance(run.target, list) else [run.target or "answer"]
        if len(names) != prediction.shape[-1]:
            names = [f"answer_{k}" for k in range(prediction.shape[-1])]
        return [dict(zip(names, map(float, row), strict=True)) for row in prediction]
    if prediction.shape[-1] == 1:  # the probability of the second of two classes
        prediction = np.concatenate([1 - prediction, prediction], axis=-1)
    best = prediction.argmax(axis=-1)
    return [
        {"answer": run.classes[k], "probability": round(float(row[k]), 6)}
        for k, row in zip(best, prediction, strict=True)
    ]


def _table(answers: list[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(answers[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(answers)
    return file.getvalue()
