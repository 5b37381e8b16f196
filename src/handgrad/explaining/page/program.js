/** Stepping through the program, and the card of the current line. */

import { element, roving } from "./dom.js";
import { figure } from "./heatmap.js";

/** Wire the list, the buttons, the slider and the links. Returns `choose`, which moves to a line. */
export function stepThrough(record, onMove) {
  const lines = [...document.querySelectorAll(".line")].sort((a, b) => numberOf(a) - numberOf(b));
  const position = document.getElementById("position");
  const where = document.getElementById("where");
  let current = 0;

  const choose = (number, { focus = false } = {}) => {
    current = Math.min(Math.max(number, 0), lines.length - 1);
    lines.forEach((line, k) => {
      line.toggleAttribute("data-done", k <= current);
      line.setAttribute("tabindex", k === current ? 0 : -1);
      if (k === current) line.setAttribute("aria-current", "step");
      else line.removeAttribute("aria-current");
    });
    for (const card of document.querySelectorAll(".card")) card.hidden = card.id !== `card-${current}`;
    position.value = current;
    const { target, phase } = record.lines[current];
    where.textContent = `Line ${current + 1} of ${lines.length}, ${phase}`;
    position.setAttribute("aria-valuetext", `${where.textContent}: ${target}`);
    reveal(lines[current]);
    if (focus) lines[current].focus({ preventScroll: true });
    fillCard(record, document.getElementById(`card-${current}`));
    document.getElementById("cards").scrollTop = 0;
    markPair(record, current, "paired");
    onMove(current);
    address(current);
  };

  const inOrder = [...document.querySelectorAll(".line")];
  roving(inOrder, (index) => choose(numberOf(inOrder[index])));
  lines.forEach((line, number) => {
    line.addEventListener("click", () => choose(number, { focus: true }));
    for (const over of ["pointerenter", "focus"]) line.addEventListener(over, () => markPair(record, number, "hinted"));
    for (const out of ["pointerleave", "blur"]) line.addEventListener(out, () => markPair(record, -1, "hinted"));
  });
  position.addEventListener("input", () => choose(Number(position.value)));
  for (const button of document.querySelectorAll("[data-step]")) {
    const to = { first: () => 0, back: () => current - 1, on: () => current + 1, last: () => lines.length - 1 };
    button.addEventListener("click", () => choose(to[button.dataset.step]()));
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a.jump");
    if (!link) return;
    event.preventDefault();
    choose(numberOf(link), { focus: true });
    if (document.getElementById("program").getBoundingClientRect().bottom < 60) scrollTo(0, 0);
  });
  document.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: lines.length - 1 }[event.key];
    const busy = document.activeElement?.closest("input:not(#position), select, canvas, summary, .hit, .line, [tabindex='0']:not(button)");
    if (to === undefined || event.defaultPrevented || busy || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(to);
  });
  return { choose, again: () => choose(current), fill: (number) => fillCard(record, document.getElementById(`card-${number}`)) };
}

/** Keep the address that of the line, so that a link to it can be copied; not at every step of a slider. */
function address(number) {
  clearTimeout(address.soon);
  address.soon = setTimeout(() => history.replaceState(null, "", `#line-${number}`), 300);
}

/** The number at the end of an id or a link: line-12. */
function numberOf(node) {
  return Number((node.id || node.getAttribute("href")).split("-").at(-1));
}

function reveal(line) {
  const list = document.getElementById("program");
  const [inner, outer] = [line.getBoundingClientRect(), list.getBoundingClientRect()];
  if (inner.top < outer.top + 32) list.scrollTop += inner.top - outer.top - 32;
  else if (inner.bottom > outer.bottom) list.scrollTop += inner.bottom - outer.bottom + 8;
}

/** Mark the lines that a line undoes, or that undo it. */
function markPair(record, number, mark) {
  const line = record.lines[number];
  const value = line && (line.phase === "backward" ? line.undoes : line.target);
  record.lines.forEach((other, k) => {
    const pair = line && line.phase !== "update" && k !== number &&
      (other.phase === "backward" ? line.phase !== "backward" && other.undoes === value
        : other.phase !== "update" && line.phase === "backward" && other.target === value);
    document.getElementById(`line-${k}`).parentElement.classList.toggle(mark, Boolean(pair));
  });
}

/** Fill a card's figures and derivation when it is first seen, and again when colours change. */
function fillCard(record, card) {
  if (card.dataset.filled === String(record.colours)) return;
  card.dataset.filled = record.colours;
  for (const slot of card.querySelectorAll(".slot[data-value]")) {
    const name = slot.dataset.value;
    slot.replaceChildren(figure(name, record.ledger[name], { pixels: record.pixels, numbers: "main" in slot.dataset }));
  }
  fillJacobians(record, card);
  for (const list of card.querySelectorAll("[data-factors]")) {
    const factors = record.lines[Number(list.dataset.factors)].factors;
    list.replaceChildren(...factors.map((k) => factor(record, k)));
  }
}

function factor(record, number) {
  const template = document.getElementById(`factor-${number}`);
  return template ? template.content.cloneNode(true) : element("li", {}, record.lines[number].target);
}

/** Draw the Jacobians within a part of the page. */
export function fillJacobians(record, part) {
  for (const slot of part.querySelectorAll("[data-jacobian]")) {
    const { sample, output, input } = record.jacobians[Number(slot.dataset.jacobian)];
    slot.replaceChildren(figure(`d${output}/d${input}`, undefined, { sample }));
  }
}
