"""What keeps a forked child from waiting for a thread that did not come along."""

from __future__ import annotations

import os
import sys
import threading
from functools import cached_property

LOCK = threading.RLock()
"""Held by whoever imports, compiles, links or looks for BLAS in a training. A fork waits for it: in the child, nobody
else could release it, nor the lock that Python has for each module being imported."""


def _renew_locks() -> None:
    """Give cached properties new locks in a forked child: before Python 3.12 they have some, and others may hold them."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "handgrad"]
    for kind in {each for module in modules for each in vars(module).values() if isinstance(each, type)}:
        for each in vars(kind).values():
            if isinstance(each, cached_property):
                each.lock = threading.RLock()  # type: ignore[attr-defined] # which typeshed does not list


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
    if sys.version_info < (3, 12):
        os.register_at_fork(after_in_child=_renew_locks)
