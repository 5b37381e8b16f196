"""Formulas that people take for a derivative: functions of one value, entry by entry."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from handgrad.checking.subject import Array

Formula = Callable[[Array], Array]


def _sigmoid(v: Array) -> Array:
    return 1 / (1 + np.exp(-v))


FORMULAS: dict[str, Formula] = {
    "1": np.ones_like,
    "{0}": lambda v: v,
    "2 {0}": lambda v: 2 * v,
    "{0}²": lambda v: v * v,
    "3 {0}²": lambda v: 3 * v * v,
    "1 - {0}": lambda v: 1 - v,
    "1 + {0}": lambda v: 1 + v,
    "{0} (1 - {0})": lambda v: v * (1 - v),
    "{0} (1 + {0})": lambda v: v * (1 + v),
    "1 - {0}²": lambda v: 1 - v * v,
    "1 + {0}²": lambda v: 1 + v * v,
    "(1 - {0})²": lambda v: (1 - v) ** 2,
    "(1 - {0}²)²": lambda v: (1 - v * v) ** 2,
    "1 / {0}": lambda v: 1 / v,
    "-1 / {0}": lambda v: -1 / v,
    "1 / {0}²": lambda v: 1 / (v * v),
    "-1 / {0}²": lambda v: -1 / (v * v),
    "√{0}": np.sqrt,
    "1 / √{0}": lambda v: 1 / np.sqrt(v),
    "1 / (2 √{0})": lambda v: 0.5 / np.sqrt(v),
    "1 / (2 {0})": lambda v: 0.5 / v,
    "e^{0}": np.exp,
    "e^-{0}": lambda v: np.exp(-v),
    "log {0}": np.log,
    "log |{0}|": lambda v: np.log(np.abs(v)),
    "sign {0}": np.sign,
    "|{0}|": np.abs,
    "[{0} > 0]": lambda v: (v > 0) * 1.0,
    "[{0} < 0]": lambda v: (v < 0) * 1.0,
    "[{0} > 1]": lambda v: (v > 1) * 1.0,
    "[|{0}| < 1]": lambda v: (np.abs(v) < 1) * 1.0,
    "σ({0})": _sigmoid,
    "σ({0}) (1 - σ({0}))": lambda v: _sigmoid(v) * (1 - _sigmoid(v)),
    "σ({0}) σ(1 - {0})": lambda v: _sigmoid(v) * _sigmoid(1 - v),
    "tanh {0}": np.tanh,
    "1 - tanh {0}": lambda v: 1 - np.tanh(v),
    "1 - tanh² {0}": lambda v: 1 - np.tanh(v) ** 2,
    "1 + tanh² {0}": lambda v: 1 + np.tanh(v) ** 2,
    "sin {0}": np.sin,
    "cos {0}": np.cos,
    "-sin {0}": lambda v: -np.sin(v),
    "1 / (1 + {0})": lambda v: 1 / (1 + v),
    "1 / (1 + {0}²)": lambda v: 1 / (1 + v * v),
    "1 / (1 - {0}²)": lambda v: 1 / (1 - v * v),
    "1 / √(1 - {0}²)": lambda v: 1 / np.sqrt(1 - v * v),
}
