"""Whether there is scikit-learn, and what is said where there is none."""

import subprocess
import sys
from importlib.util import find_spec

import pytest


@pytest.mark.peers
def test_scikit_learn_is_there() -> None:
    """The other tests of this folder are not passed over in silence."""
    assert find_spec("sklearn") is not None


def test_without_scikit_learn_the_error_says_what_to_install() -> None:
    code = "import sys; sys.modules['sklearn.base'] = None; import handgrad.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "MissingPackageError" in done.stderr
    assert "pip install 'handgrad[sklearn]'" in done.stderr
