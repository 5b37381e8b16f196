"""Rounds in which every peer works for a while, and what comes of them."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from peers import FLOOR, OURS
from peers.child import Child
from peers.workload import Workload


@dataclass
class Measured:
    """What one peer did with one workload.

    Attributes
    ----------
    peer
        Its name.
    problem
        Why it did nothing; "" when it did.
    rounds
        Seconds a step, in each round.
    losses
        Before and after the first epoch.
    first
        Seconds until the end of the first epoch, in which it compiles.
    facts
        What it says of itself.
    peak
        The most memory its process has had, in MiB.
    """

    peer: str
    problem: str = ""
    rounds: list[float] = field(default_factory=list)
    losses: tuple[float, float] | None = None
    first: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    peak: float = 0.0

    @property
    def seconds(self) -> float:
        """The median of the rounds."""
        return median(self.rounds)

    def ratio(self, other: Measured) -> float:
        """How many times as long as another's step this one's takes: the median of the rounds' ratios."""
        return median(mine / its for mine, its in zip(self.rounds, other.rounds, strict=True))


def measure(workload: Workload, peers: Iterable[str], rounds: int, seconds: float) -> list[Measured]:
    """Let peers take turns, in another order each round."""
    results, children = [], {}
    with ExitStack() as stack:
        for peer in peers:
            tell(f"{workload.name}: {peer} starts")
            child = stack.enter_context(closing(Child(peer, workload)))
            started = child.started
            results.append(
                Measured(
                    peer, started.problem, losses=started.losses, first=started.seconds, facts=started.facts
                )
            )
            if not started.problem:
                children[peer] = child
        turns = {result.peer: result.rounds for result in results}
        for number in range(rounds):
            tell(f"{workload.name}: round {number + 1} of {rounds}")
            for peer in random.Random(number).sample(sorted(children), len(children)):
                turns[peer].append(children[peer].step_seconds(seconds))
        for result in results:
            result.peak = children[result.peer].peak if result.peer in children else 0.0
    tell("")
    return results


def table(workload: Workload, results: list[Measured]) -> str:
    """Return a table of one workload's results."""
    ours = next((result for result in results if result.peer == OURS and result.rounds), None)
    width = max(len(result.peer) for result in results) + 2
    lines = [f"{workload.name}, {workload.steps} steps an epoch, {workload.optimiser} at {workload.rate}"]
    lines.append(
        f"{'':{width}}{'µs a step':>12}{'ratio':>8}{'loss, first':>14}{'1 epoch on':>12}{'that took, s':>14}{'MiB':>8}"
    )
    for result in results:
        line = f"{result.peer:{width}}"
        if result.problem:
            lines.append(f"{line}  {result.problem}")
            continue
        line += f"{result.seconds * 1e6:12,.1f}" + (f"{result.ratio(ours):8.2f}" if ours else " " * 8)
        if result.losses is not None:
            line += f"{result.losses[0]:14.4f}{result.losses[1]:12.4f}{result.first:14.2f}{result.peak:8,.0f}"
        lines.append(line)
    if ours is not None and (verdict := _verdict(ours, results)):
        lines.append(verdict)
    return "\n".join(lines)


def _verdict(ours: Measured, results: list[Measured]) -> str:
    """Say how far ahead of the best peer, and how far from the floor."""
    parts = []
    others = [r for r in results if r.rounds and r.peer not in FLOOR and not r.peer.startswith(OURS)]
    if others:
        best = min(others, key=lambda result: result.seconds)
        parts.append(f"best peer {best.peer}: {best.ratio(ours):.2f} times handgrad's time")
    floors = [result for result in results if result.rounds and result.peer in FLOOR]
    if floors:
        floor = min(floors, key=lambda result: result.seconds)
        parts.append(f"handgrad is {ours.ratio(floor):.2f} times the floor ({floor.peer})")
    return "; ".join(parts)


def as_json(workload: Workload, results: list[Measured]) -> dict[str, Any]:
    """Return one workload's results as they are written to JSON."""
    ours = next((result for result in results if result.peer == OURS and result.rounds), None)
    return {
        "network": workload.name,
        "peers": {
            result.peer: {"problem": result.problem}
            if result.problem
            else {
                "step_seconds": result.seconds,
                "ratio": result.ratio(ours) if ours is not None else None,
                "rounds": result.rounds,
                "peak_mib": result.peak,
                "losses": result.losses,
                "first_epoch_seconds": result.first,
                "facts": dict(result.facts),
            }
            for result in results
        },
    }


def tell(text: str) -> None:
    """Show what is going on, on a terminal only."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
