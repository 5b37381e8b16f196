/** One entry: changed and nudged where it is given, written out where a line makes it, before and after where it is updated. */

import { at, trace } from "./arithmetic.js";
import { digits, element } from "./dom.js";
import { compared, lossCurve, nudged } from "./nudge.js";
import { overPlane, unitPicture } from "./predictions.js";

const CURVE_AFTER = 150; // ms in which an entry has settled

/** What can be done with one entry of a line's card. */
export function entryPanel(lab, name, place, line) {
  const { program } = lab;
  if (!(name in program.given.names)) return element("p", { class: "muted" }, "not computed in this page");
  const { shape } = program.value(name);
  const panel = element("div", { class: "entry", "aria-live": "polite" }, element("p", { class: "entry-title" }, titleOf(lab, name, place)));
  if (line.phase === "update" && line.target === name && name in program.given.assigned) panel.append(updated(program, name, place));
  else if (name in program.arrays) panel.append(...change(lab, name, place, panel));
  else panel.append(...traced(lab, name, place));
  const forward = lab.record.lines.some((each) => each.target === name && each.phase === "forward");
  if (forward && overPlane(program) && shape.length === 2) panel.append(unitPicture(program, name, place % shape[1]));
  return panel;
}

/** An entry's number; with a mistake on, what it is without. */
function titleOf(lab, name, place) {
  const { shape, data } = lab.program.value(name);
  const without = lab.mistake?.change ? lab.right().value(name).data[place] : data[place];
  const both = without !== data[place] ? ` with the mistake in ${lab.mistake.target}; without it ${digits(without)}` : "";
  return element("code", {}, `${at(name, shape, place)} = ${digits(data[place])}${both}`);
}

/** How an entry is computed; by the line as it is printed, where a mistake is on in it. */
function traced(lab, name, place) {
  const number = lab.program.given.names[name];
  if (lab.mistake?.target !== name || !lab.mistake.change) return [trace(lab.program, number, place)];
  return [element("p", {}, "The line as it is printed, without the mistake:"), trace(lab.right(), number, place)];
}

/** An entry before and after its update. */
function updated(program, name, place) {
  const number = program.given.assigned[name];
  const box = element("div", {}, element("p", {}, `before the step ${digits(program.arrays[name][place])}, after it ${digits(program.results[number].data[place])}:`));
  box.append(trace(program, number, place));
  return box;
}

/** An entry's own number and slider, and beside its gradient the slope between two nudged losses. */
function change(lab, name, place, panel) {
  const { program } = lab;
  const limit = program.limitOf(name);
  const whole = limit !== null;
  const step = whole ? 1 : "any";
  const number = element("input", { type: "number", step, "aria-label": `${name}, number`, ...(whole ? { min: 0, max: limit - 1 } : {}) });
  const slider = element("input", { type: "range", step, "aria-label": `${name}, slider` });
  const [slope, note] = [element("div"), element("p", { class: "error", role: "alert", hidden: "" })];
  const own = () => program.arrays[name][place];
  const reach = () => {
    const far = Math.max(2 * Math.abs(own()), 1);
    const [low, high] = whole ? [0, limit - 1] : [own() - far, own() + far];
    Object.assign(slider, { min: low, max: high, step: whole ? 1 : (high - low) / 400, value: own() });
  };
  number.value = own();
  reach();
  const set = (text) => {
    const value = Number(text);
    const suits = text.trim() !== "" && Number.isFinite(value) && (!whole || (Number.isInteger(value) && value >= 0 && value < limit));
    number.setAttribute("aria-invalid", !suits);
    note.hidden = suits;
    if (!suits) {
      note.textContent = `${whole ? `Give a whole number from 0 to ${limit - 1}` : "Give a number"}: ${digits(own())} is used.`;
      return;
    }
    program.arrays[name] = program.arrays[name].slice();
    program.arrays[name][place] = value;
    lab.moved();
    panel.querySelector(".entry-title").replaceChildren(titleOf(lab, name, place));
    if (!whole) showSlope(lab, name, place, slope);
  };
  number.addEventListener("input", () => {
    set(number.value);
    if (note.hidden) reach();
  });
  slider.addEventListener("input", () => set((number.value = slider.value)));
  slider.addEventListener("change", reach); // let go: it goes on from there
  if (!whole) showSlope(lab, name, place, slope, true);
  return [element("p", { class: "change" }, number, slider), note, slope];
}

/** The nudge at once, the loss's curve when the number has settled. */
function showSlope(lab, name, place, slope, settled = false) {
  const { program } = lab;
  const draw = () => {
    const old = slope.querySelector("svg");
    const curve = settled || !old ? lossCurve(program, name, place) : old;
    slope.replaceChildren(element("p", {}, "Nudged by ", choice), ...compared(lab, name, place, nudged(program, name, place, lab.h)), curve);
  };
  const choice = slope.querySelector("select") ?? element("select", { "aria-label": "h" }, ...[1, 0.1, 1e-2, 1e-4, 1e-6].map((value) => {
    const option = element("option", { value }, `h = ${value}`);
    option.selected = value === lab.h;
    return option;
  }));
  choice.onchange = () => {
    lab.h = Number(choice.value);
    showSlope(lab, name, place, slope, true);
  };
  draw();
  clearTimeout(slope.soon);
  if (!settled) slope.soon = setTimeout(() => slope.isConnected && showSlope(lab, name, place, slope, true), CURVE_AFTER);
}
