"""Where in the user's source a recorded operation runs, and the variable that its result is stored in."""

from __future__ import annotations

import dis
import sys
from functools import lru_cache
from itertools import pairwise
from types import CodeType, FrameType


def look_around(scopes: set[int]) -> tuple[tuple[str, int, str], str]:
    """Return the place of the user's line that runs now, and the name that its result is given.

    Parameters
    ----------
    scopes
        The ids of the globals that are the user's.
    """
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and id(frame.f_globals) not in scopes:
        frame = frame.f_back
    if frame is None:
        return ("", 0, ""), ""
    code = frame.f_code
    place = (code.co_filename, frame.f_lineno, code.co_name)
    target = ""
    caller: FrameType | None = frame
    for _ in range(4):
        if caller is None or id(caller.f_globals) not in scopes:
            break
        target = _targets(caller.f_code).get(caller.f_lasti, "")
        if target != "return":
            break
        target, caller = "", caller.f_back
    return place, target


@lru_cache(maxsize=512)
def _targets(code: CodeType) -> dict[int, str]:
    """Map the offset of an instruction to the variable its result is stored in, or to "return"."""
    instructions = [i for i in dis.get_instructions(code) if i.opname not in ("EXTENDED_ARG", "NOP")]
    targets: dict[int, str] = {}
    for now, after in pairwise(instructions):
        name = ""
        if after.opname.startswith(("STORE_FAST", "STORE_NAME", "STORE_DEREF", "STORE_GLOBAL")):
            name = after.argval if isinstance(after.argval, str) else after.argval[0]
        elif after.opname == "RETURN_VALUE":
            name = "return"
        # while a Python function is called, the offset points behind the call's inline cache
        targets.update(dict.fromkeys(range(now.offset, after.offset, 2), name))
    return targets
