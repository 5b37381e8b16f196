/** Stepping through the program, and the card of the current line. */

import { element, roving } from "./dom.js";
import { commonCell, figure, jacobianFigure, light, numbersOf } from "./heatmap.js";
import { entryPanel } from "./entries.js";
import { jacobianOfRow } from "./lab.js";
import { mistakePanel } from "./mistake_panel.js";

const [TALLEST, LOWEST, CAPTION] = [320, 100, 42]; // pixels of the pictures' height, and of what is above each

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

  const refill = (what = "all") => {
    fillCard(record, document.getElementById(`card-${current}`), what);
    if (what === "all") onMove(current);
  };

  const inOrder = [...document.querySelectorAll(".line")];
  roving(inOrder, (index) => choose(numberOf(inOrder[index])));
  lines.forEach((line, number) => {
    line.addEventListener("click", (event) => {
      event.preventDefault(); // without this script it leads to the line's card
      choose(number, { focus: true });
    });
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
    const busy = document.activeElement?.closest("input:not(#position), select, .hit, .line, .wide");
    if (to === undefined || event.defaultPrevented || busy || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(to);
  });
  return { choose, again: refill };
}

/** Keep the address that of the line, so that a link to it can be copied; not at every step of a slider. */
function address(number) {
  clearTimeout(address.soon);
  if (location.protocol === "about:") return; // a notebook's frame has no address
  address.soon = setTimeout(() => history.replaceState(null, "", `#line-${number}`), 300);
}

/** The number at the end of an id or a link: line-12. */
function numberOf(node) {
  return Number((node.id || node.getAttribute("href")).split("-").at(-1));
}

function reveal(line) {
  const list = document.getElementById("program");
  const head = list.querySelector("h4").offsetHeight; // stays at the top
  const below = line.getBoundingClientRect().bottom - list.getBoundingClientRect().bottom;
  if (below > 0) list.scrollTop += below + 8;
  const above = list.getBoundingClientRect().top + head - line.getBoundingClientRect().top;
  if (above > 0) list.scrollTop -= above;
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

/** Fill a card's figures and derivation when it is first seen, and again when colours or numbers change: these in place. */
function fillCard(record, card, what = "all") {
  const part = { frame: typeof what === "number" ? what % 3 : 0, all: what === "all" };
  if (card.dataset.filled === record.stamp() && !(part.all && "partly" in card.dataset)) return;
  const anew = card.dataset.colours !== String(record.colours);
  Object.assign(card.dataset, { filled: record.stamp(), colours: record.colours });
  if (part.all) delete card.dataset.partly;
  else card.dataset.partly = "";
  const entry = record.lab && (part.all || part.frame === 2) && choosable(record, card);
  if (entry) showEntry(record, card); // before the pictures, which have the room beside it
  if (part.frame === 0) fillValues(record, card, anew, part.all);
  if (entry) lightEntry(record, card);
  if (!part.all) return;
  if (record.lab) showMistakes(record, card);
  fillJacobians(record, card);
  if (!anew) return;
  for (const list of card.querySelectorAll("[data-factors]")) {
    const factors = record.lines[Number(list.dataset.factors)].factors;
    list.replaceChildren(...factors.map((k) => factor(record, k)));
  }
}

/**
 * The pictures of a line's values, of one scale and in true proportion, and the numbers of its result and of what can be
 * changed: other numbers in those that are there, anew when colours or sizes are others.
 */
function fillValues(record, card, anew, settled) {
  const slots = [...card.querySelectorAll(".slot[data-value]")];
  if (!slots.length) return;
  const [pictures, tables] = [slots[0].parentElement, card.querySelector(".tables")];
  const entries = slots.map((slot) => record.fresh(slot.dataset.value));
  const chooser = (name) => record.lab && ((indices) => chooseEntry(record, card, name, placeOf(record, name, indices)));
  let { room, size } = pictures;
  if (anew || settled || !size) {
    room = pictures.clientWidth - 4;
    size = commonCell(entries, room, heightFor());
  }
  const same = !anew && pictures.room === room && pictures.size?.cell === size.cell && pictures.size.whole === size.whole;
  const kept = (part) => same || (!anew && part.contains(document.activeElement));
  if (kept(pictures)) {
    for (const slot of slots) slot.firstChild?.redraw?.();
    if (!same) card.dataset.partly = ""; // to be drawn in the new size when the focus is elsewhere
  } else {
    slots.forEach((slot, k) => slot.replaceChildren(figure(slot.dataset.value, entries[k], { pixels: record.pixels, size, choose: chooser(slot.dataset.value) })));
    delete card.dataset.lit;
    Object.assign(pictures, { room, size });
  }
  if (kept(tables)) for (const table of tables.children) table.redraw();
  else {
    const listed = slots.filter((slot) => "main" in slot.dataset || record.lab?.program.arrays[slot.dataset.value]).reverse();
    tables.replaceChildren(...listed.map((slot) => slot.dataset.value).filter((name) => record.ledger[name]?.sample.shape.length)
      .map((name) => numbersOf(name, record.ledger[name], room, chooser(name))));
  }
}

/** How high pictures may be, so that the panel of an entry has its half of what is seen below them. */
function heightFor() {
  const list = document.getElementById("cards");
  const seen = getComputedStyle(list).overflowY === "auto" ? list.clientHeight : innerHeight - 180;
  return Math.min(TALLEST, Math.max(LOWEST, seen / 2 - CAPTION - 40));
}

/** The mistakes of a line that a gradient comes through; drawn again when one is or was on. */
function showMistakes(record, card) {
  const part = card.querySelector("[data-mistakes]");
  if (!part) return;
  const number = record.live.names[part.dataset.mistakes];
  part.hidden = number === undefined || !record.lab.program.carries(number);
  if (part.hidden) return;
  const fill = () => {
    if (!part.open || (part.shown && !record.lab.mistake && !part.shown.mistake)) return;
    part.shown = { mistake: record.lab.mistake };
    const focused = part.contains(document.activeElement) && document.activeElement.textContent;
    part.querySelector("div").replaceChildren(mistakePanel(record.lab, part.dataset.mistakes));
    if (focused) [...part.querySelectorAll("button")].find((button) => button.textContent === focused)?.focus();
  };
  part.ontoggle = fill;
  fill();
}

function placeOf(record, name, indices) {
  return indices.reduce((place, index, axis) => place * record.ledger[name].sizes[axis] + index, 0);
}

/** Open the panel of an entry below the pictures, where it stays in view, and bring its picture into view with it. */
export function chooseEntry(record, card, name, place) {
  record.chosen = { card, name, place };
  showEntry(record, card, true);
  lightEntry(record, card);
  const panel = card.querySelector(".entry-slot");
  panel.classList.add("chosen");
  if (!panel.querySelector(".close")) {
    const close = element("button", { type: "button", class: "quiet close", "aria-label": "Close" }, "×");
    close.addEventListener("click", () => closeEntry(card));
    panel.prepend(close);
  }
  let frames = 4; // in which the panel grows to its size
  const follow = () => {
    showTogether(card, name, panel);
    if (frames-- > 0) requestAnimationFrame(follow);
  };
  follow();
}

/**
 * Scroll so that a picture with its caption is in view above an entry's panel, or beside it, and those with it in which
 * something is lit, where there is room for all.
 */
function showTogether(card, name, panel) {
  const list = document.getElementById("cards");
  const own = getComputedStyle(list).overflowY === "auto"; // on a phone the whole page scrolls
  const frame = card.querySelector(`.slot[data-value="${name}"] .frame`);
  const [chosen, opened, pane] = [frame, panel, list].map((part) => part.getBoundingClientRect());
  const top = (own ? pane.top : document.querySelector(".stepper").getBoundingClientRect().bottom) + CAPTION;
  const end = own ? pane.bottom : innerHeight;
  const bottom = (opened.left >= chosen.right ? end : opened.top) - 8;
  const lit = [chosen, ...[...card.querySelectorAll(".frame:has(.lit)")].map((part) => part.getBoundingClientRect())];
  const all = { top: Math.min(...lit.map((each) => each.top)), bottom: Math.max(...lit.map((each) => each.bottom)) };
  const picture = all.bottom - all.top <= bottom - top ? all : chosen;
  const above = picture.top - top;
  const by = above < 0 ? above : Math.max(0, Math.min(Math.max(picture.bottom - bottom, opened.bottom - end), above));
  (own ? list : window).scrollBy(0, by);
}

function closeEntry(card) {
  card.querySelector(".entry-slot")?.classList.remove("chosen");
  card.querySelector(".entry-slot .close")?.remove();
}

/** Whether a card has an entry to show: the chosen one, its line's largest one until another is chosen. */
function choosable(record, card) {
  if (record.chosen?.card === card) return true;
  const main = card.querySelector("[data-main]")?.dataset.value;
  const data = main && record.live.names[main] !== undefined ? record.lab.program.value(main).data : [];
  if (!data.length) return false;
  closeEntry(card);
  record.chosen = { card, name: main, place: data.reduce((best, value, k) => (Math.abs(value) > Math.abs(data[best]) ? k : best), 0) };
  return true;
}

/** The panel of the chosen entry; one whose number is being typed stays. */
function showEntry(record, card, chosen = false) {
  const panel = card.querySelector(".entry-slot");
  if (!chosen && panel.querySelector(".change") && panel.contains(document.activeElement)) return;
  const { name, place } = record.chosen;
  const close = panel.querySelector(".close");
  panel.dataset.entry = name;
  panel.replaceChildren(...(close ? [close] : []), entryPanel(record.lab, name, place, record.lines[numberOf(card)]));
}

/** Outline the chosen entry, and what it is made of, in the card's pictures. */
function lightEntry(record, card) {
  const { name, place } = record.chosen;
  const { program } = record.lab;
  if (card.dataset.lit === `${name} ${place}`) return;
  card.dataset.lit = `${name} ${place}`;
  const parts = name in program.given.names && !(name in program.arrays) ? program.leaves(program.given.names[name], place) : [];
  for (const slot of card.querySelectorAll(".slot[data-value]")) {
    const own = slot.dataset.value;
    const lit = own === name ? [place] : parts.filter((part) => part.name === own).map((part) => part.place);
    if (record.live.names[own] !== undefined) light(slot, program.value(own).shape, lit);
  }
}

function factor(record, number) {
  const template = document.getElementById(`factor-${number}`);
  return template ? template.content.cloneNode(true) : element("li", {}, record.lines[number].target);
}

/** Draw the Jacobians within a part of the page; where the page computes them, of any row. */
export function fillJacobians(record, part) {
  for (const slot of part.querySelectorAll("[data-jacobian]")) {
    const jacobian = record.jacobians[Number(slot.dataset.jacobian)];
    const figureOf = (row) => jacobianFigure((record.lab && row !== null && jacobianOfRow(record.lab, jacobian, row)) || jacobian, row ?? jacobian.example);
    const details = slot.closest("details");
    details.ontoggle = () => fillJacobians(record, details);
    if (!details.open && slot.firstChild) continue; // drawn when it is opened
    const live = details.open && record.lab && jacobian.example !== null && jacobianOfRow(record.lab, jacobian, jacobian.example);
    const chosen = Number(slot.querySelector("input")?.value ?? jacobian.example);
    slot.replaceChildren(figureOf(live ? chosen : null));
    if (!live) continue;
    const input = element("input", { type: "number", min: 0, max: record.lab.program.n - 1, value: chosen });
    input.addEventListener("input", () => {
      const row = Math.min(Math.max(Math.round(Number(input.value)), 0), record.lab.program.n - 1);
      slot.querySelector("figure").replaceWith(figureOf(row));
      for (const place of details.querySelectorAll("[data-row]")) place.textContent = row;
    });
    slot.prepend(element("p", {}, element("label", {}, "of row ", input)));
  }
}
