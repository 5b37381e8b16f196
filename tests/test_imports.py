"""What handgrad imports, and where: read from the source, so that a lazy import counts too."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import handgrad

SOURCE = Path(handgrad.__file__).parent
MODULES = {
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(SOURCE.rglob("*.py"))
}

# Where each package beyond NumPy and the standard library may be imported, and why there.
HOMES = {
    "click": ("handgrad.cli", "only the command line has options"),
    "jax": (
        "handgrad.checking.interfaces.jax_functions",
        "a peer: functions with a custom VJP, when the user has one",
    ),
    "jinja2": ("handgrad.explaining.page", "the one place that writes a page"),
    "llvmlite": ("handgrad.engines.compiled", "the one place that makes native code"),
    "markupsafe": ("handgrad.explaining.page", "comes with jinja2: what is HTML already"),
    "math_core": ("handgrad.explaining.page", "formulas as a browser shows them"),
    "matplotlib": ("handgrad.training.pictures", "slow to import: the one place that draws"),
    "msgspec": (
        "handgrad.checkpoints handgrad.cli.run_folder handgrad.configuration handgrad.explaining handgrad.files "
        "handgrad.network.saving handgrad.runs handgrad.sklearn.persistence handgrad.specs handgrad.training.history",
        "tables of others become checked objects",
    ),
    "PIL": ("handgrad.data.images", "comes with matplotlib: the one place that reads images"),
    "pooch": ("handgrad.data.builtin", "an extra: the one place that downloads"),
    "pyarrow": ("handgrad.data.parquet_table", "an extra: the one place that reads Parquet"),
    "rich": ("handgrad.training.progress", "slow to import: the one place that draws a bar"),
    "safetensors": ("handgrad.files", "weights: handgrad's own, and as PyTorch names them"),
    "scipy": ("handgrad.sklearn", "comes with scikit-learn: its sparse rows and its L-BFGS-B"),
    "sklearn": ("handgrad.sklearn", "an extra: what its estimators inherit"),
    "torch": (
        "handgrad.checking.interfaces.torch_functions handgrad.interop.modules",
        "a peer: autograd functions, when the user has one; modules, when one is converted",
    ),
    "tensorboardX": ("handgrad.tracking", "an extra: the one place that writes event files"),
    "tomli_w": ("handgrad.configuration", "the one place that writes TOML"),
}

# These may be missing, and are imported in the function that needs them.
EXTRAS = {"jax", "pooch", "pyarrow", "tensorboardX", "torch"}

# But what inherits from a peer's class is a module of its own, imported where that peer is.
CLASSES_OF_PEERS = {"handgrad.interop.modules"}

# Data and run folders come from strangers: what could run their contents is not in reach.
REFUSED = {"marshal", "pickle", "shelve", "dill", "cloudpickle", "joblib"}


# What speaks to the network, or starts a program.
OUTSIDE = {
    "asyncio",
    "ftplib",
    "http",
    "multiprocessing",
    "socket",
    "ssl",
    "subprocess",
    "urllib",
    "webbrowser",
}


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """Yield the top name of every package a file imports, and whether it does so at the top of the file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        yield from ((name.partition(".")[0], node in tree.body) for name in names)


@pytest.mark.parametrize("module", MODULES)
def test_every_package_is_imported_at_home(module: str) -> None:
    for package, at_top in imports(MODULES[module]):
        if package in sys.stdlib_module_names or package in ("handgrad", "numpy"):
            continue
        homes, why = HOMES[package]
        at_home = any(module == home or module.startswith(f"{home}.") for home in homes.split())
        assert at_home, f"{module} imports {package}, whose home is {homes}: {why}"
        needed = package not in EXTRAS or module in CLASSES_OF_PEERS
        assert needed or not at_top, f"{module} imports {package} before it needs it"


def test_every_home_is_lived_in() -> None:
    """A package that is no longer imported leaves the list, and the dependencies."""
    used = {package for path in MODULES.values() for package, _ in imports(path)}
    assert HOMES.keys() <= used


@pytest.mark.parametrize("module", MODULES)
def test_nothing_is_unpickled(module: str) -> None:
    text = MODULES[module].read_text(encoding="utf-8")
    assert not REFUSED & {package for package, _ in imports(MODULES[module])}
    assert "allow_pickle=True" not in text


def test_only_the_download_speaks_to_the_network() -> None:
    """Through pooch, which is imported there alone; and no program is started but handgrad itself, by a sweep."""
    used = {
        module: {package for package, _ in imports(path)} & {*OUTSIDE, "pooch"}
        for module, path in MODULES.items()
    }
    assert {module: packages for module, packages in used.items() if packages} == {
        "handgrad.data.builtin": {"pooch"},
        "handgrad.cli.sweep": {"subprocess"},
    }


@pytest.mark.parametrize(
    ("code", "loads_numpy"),
    [
        ("import handgrad", False),
        ("from handgrad import Network, train; import handgrad.data", True),
        ("import handgrad; handgrad.rules.relu; handgrad.data.digits", True),
        ("from handgrad.cli import main", False),
        ("from handgrad.cli import main; sys.argv[1:] = ['--help']; main()", False),
        ("from handgrad.cli import main; sys.argv[1:] = ['--version']; main()", False),
    ],
)
def test_an_import_loads_numpy_at_most(code: str, loads_numpy: bool) -> None:
    """It is quick: whatever is slow or optional is imported where it is used, and help is printed without NumPy."""
    report = "lambda: print('loaded', *{name.partition('.')[0] for name in sys.modules})"
    code = f"import atexit, sys; atexit.register({report}); {code}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.rpartition("loaded ")[2].split())
    assert ("numpy" in loaded) == loads_numpy
    assert loaded & {*HOMES, "pandas", "numba"} <= ({"click"} if "cli" in code else set())
