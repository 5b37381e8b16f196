"""Facts about the machine that numbers depend on."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = (
    "handgrad", "numpy", "llvmlite", "mkl", "scikit-learn", "scipy", "thinc", "torch", "jax", "jaxlib", "mpmath"
)  # fmt: skip

VARIABLES = ("OMP_", "OPENBLAS_", "MKL_", "KMP_", "GOMP_", "XLA_", "HANDGRAD_", "TORCH")


def facts() -> dict[str, Any]:
    """Return what is known of the machine, the libraries, and the settings of this run."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gib": _memory(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy_blas": _numpy_blas(),
        "versions": {name: _version(name) for name in PACKAGES},
        "environment": {k: v for k, v in sorted(os.environ.items()) if k.startswith(VARIABLES)},
        "load_before": os.getloadavg() if hasattr(os, "getloadavg") else None,
    }


def summary(known: dict[str, Any]) -> str:
    """Return the facts in three lines."""
    versions = ", ".join(
        f"{name} {version or 'not installed'}" for name, version in known["versions"].items()
    )
    settings = " ".join(f"{name}={value}" for name, value in known["environment"].items()) or "none"
    load = known["load_before"]
    return "\n".join((
        f"{known['processor']}, {known['cores']} cores, {known['system']}, Python {known['python']}, "
        f"NumPy with {known['numpy_blas']}" + (f", load {load[0]:.1f}" if load else ""),
        versions,
        f"settings: {settings}",
    ))  # fmt: skip


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _numpy_blas() -> str:
    blas: dict[str, Any] = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[call-overload]
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
