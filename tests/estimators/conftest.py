"""Tests of the estimators need scikit-learn: without it they cannot be read, and `test_installed.py` says so."""

from importlib.util import find_spec

if find_spec("sklearn") is None:
    collect_ignore_glob = [
        "test_as_*.py",
        "test_properties.py",
        "test_beyond.py",
        "test_inputs.py",
        "test_saving.py",
        "test_notices.py",
        "test_useless_fits.py",
    ]
