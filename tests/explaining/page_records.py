"""Records whose pages the browser tests open, and how contrast is measured there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from handgrad import Linear, Network, ReLU, Residual, SoftmaxCrossEntropy, Tanh
from handgrad.explaining import Explanation, explain
from handgrad.explaining.record import HealthFinding
from handgrad.explaining.snapshots import take_snapshot

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"

CONTRAST = """() => {
  const channel = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const read = (colour) => {
    probe.clearRect(0, 0, 1, 1); probe.fillStyle = colour; probe.fillRect(0, 0, 1, 1);
    return [...probe.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => 0.2126 * channel(r / 255) + 0.7152 * channel(g / 255) + 0.0722 * channel(b / 255);
  const behind = (node) => {
    if (node instanceof SVGElement && node.closest("g.block")) {
      return read(getComputedStyle(node.closest("g.block").querySelector("rect")).fill);
    }
    for (let at = node; at; at = at.parentElement) {
      const found = read(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.getClientRects().length || node.closest("script, .skip, title")) continue;
    const style = getComputedStyle(node);
    const [a, b] = [light(read(node instanceof SVGElement ? style.fill : style.color)), light(behind(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    seen += 1;
    if (ratio < 4.5) poor.push(`${walker.currentNode.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return { poor, seen };
}"""


def record_of_moons() -> Explanation:
    """Two inputs, a residual branch, snapshots with the answers over the two inputs, and a finding."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=(24, 2))
    t = (x[:, 0] * x[:, 1] > 0).astype(int)
    network = Network(
        Linear(2, 6), Tanh(), Residual(Linear(6, 6), ReLU()), Linear(6, 2), loss=SoftmaxCrossEntropy(), seed=4
    )
    snapshots = []
    for step in range(0, 40, 8):
        snapshots.append(replace(take_snapshot(network, x, t), epoch=step // 8, step=step))
        for _ in range(8):
            for name, gradient in network.gradients(x, t).items():
                network.parameters[name] -= gradient
    record = explain(network, x, t)
    finding = HealthFinding("dead-units", "a1", "3 of 6 units are dead", "the bias is low", "a smaller rate")
    return replace(record, snapshots=tuple(snapshots), health=replace(record.health, findings=(finding,)))


def made_hostile(record: Explanation) -> Explanation:
    """Return a record in which every name and sentence tries to become a script."""
    lines = tuple(
        replace(
            line, layer=HOSTILE, rule=HOSTILE, reason=HOSTILE, expression=HOSTILE, tex=rf"\text{{{HOSTILE}}}"
        )
        for line in record.lines
    )
    ledger = {name: replace(entry, axes=(HOSTILE,), kind=HOSTILE) for name, entry in record.ledger.items()}
    ledger[HOSTILE] = replace(record.ledger["x"], name=HOSTILE)
    drawing = tuple(
        replace(block, label=HOSTILE, layer=HOSTILE, parameters=(HOSTILE,)) for block in record.drawing
    )
    finding = HealthFinding(HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    jacobians = tuple(replace(j, stored=HOSTILE, explanation=HOSTILE) for j in record.jacobians)
    snapshots = tuple(
        replace(
            s,
            samples={HOSTILE: next(iter(s.samples.values()))},
            summaries={HOSTILE: next(iter(s.summaries.values()))},
        )
        for s in record.snapshots
    )
    return replace(
        record,
        title=HOSTILE, lines=lines, ledger=ledger, drawing=drawing, jacobians=jacobians, snapshots=snapshots,
        health=replace(record.health, findings=(finding,)),
    )  # fmt: skip
