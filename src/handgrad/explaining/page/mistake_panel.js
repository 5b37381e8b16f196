/** Switching mistakes on: their buttons, what they do to a gradient, to a nudge and to a training, and that one is on. */

import { digits, drawn, element } from "./dom.js";
import { mistakesOf } from "./mistakes.js";
import { compared, nudged } from "./nudge.js";

const STEPS = 60; // of the two trainings
const SAME = 1e-12; // of a gradient's size: a smaller difference is rounding

/** Switch a mistake of a line on, or with null that which is on off; `lab.again` draws what follows. */
export function switchOn(lab, mistake) {
  lab.mistake = mistake;
  lab.program.changed.clear();
  if (mistake?.change) lab.program.changed.set(mistake.at, mistake.change);
  showBanner(lab);
}

/** What is on, seen at every line, until it is switched off there or by Reset. */
function showBanner(lab) {
  const place = document.getElementById("mistake");
  place.hidden = !lab.mistake;
  if (place.hidden) return;
  const { target, name } = lab.mistake;
  const line = lab.record.lines.findIndex((each) => each.target === target);
  const off = element("button", { type: "button", class: "quiet" }, "switch off");
  off.addEventListener("click", () => {
    switchOn(lab, null);
    lab.again();
  });
  place.replaceChildren("A mistake is on in ", element("a", { class: "jump", href: `#line-${line}` }, element("code", {}, target)), `: ${name} `, off);
}

/** The buttons of a line's mistakes, and what the one that is on does. */
export function mistakePanel(lab, target) {
  const on = lab.mistake?.target === target ? lab.mistake : null;
  const box = element("div", { class: "mistakes" });
  const buttons = mistakesOf(lab, target).map((mistake) => {
    const pressed = on?.name === mistake.name;
    const button = element("button", { type: "button", class: "quiet", "aria-pressed": pressed }, mistake.name);
    button.addEventListener("click", () => {
      switchOn(lab, pressed ? null : { ...mistake, target });
      lab.again();
    });
    return button;
  });
  box.append(element("p", { class: "mistake-buttons" }, ...buttons));
  if (on?.error) box.append(element("p", { class: "error" }, on.error));
  else if (on) box.append(...effect(lab, target));
  if (on) box.append(element("p", { class: "muted" }, "handgrad check names it ", element("code", {}, on.code), "; its page is ", element("code", {}, `docs/mistakes/${on.code}.md`)));
  return box;
}

const size = (data) => Math.hypot(...data);

/** How far the line is off, a nudge beside its gradient, and two trainings from the weights at hand. */
function effect(lab, target) {
  const [right, wrong] = [lab.right(), lab.program];
  const [a, b] = [right, wrong].map((each) => each.value(target).data);
  const off = size(a.map((value, k) => value - b[k]));
  if (off <= SAME * Math.max(size(a), size(b))) return [element("p", {}, `${target} is the same here: nothing is lost.`)];
  const of = lab.record.ledger[target]?.gradient_of;
  const rounding = right.isRounding(right.given.names[target]);
  const text = !rounding ? `${target} is off by ${digits(off / (size(a) || 1))} times its size.`
    : off > 1e-6 * right.terms(right.given.names[target], 0).reduce((sum, [part]) => sum + Math.abs(part.value), 0)
      ? `${target} is 0 but for rounding in the right line, and of size ${digits(size(b))} with the mistake.`
      : `${target} is 0 but for rounding, with the mistake too: ${of} does not change the loss here.`;
  return [element("p", {}, text), ...worstNudge(lab, right), ...trainings(right, wrong)];
}

/** A nudge of the parameter's entry whose gradient is furthest off. */
function worstNudge(lab, right) {
  const { program } = lab;
  const known = program.given.parameters.filter((name) => program.given.names[`d${name}`] !== undefined);
  const every = known.flatMap((name) => {
    const [a, b] = [right, program].map((each) => each.value(`d${name}`).data);
    return Array.from(a, (value, place) => ({ name, place, off: Math.abs(value - b[place]) }));
  });
  const worst = every.reduce((best, each) => (each.off > best.off ? each : best), { off: 0 });
  const largest = Math.max(...known.map((name) => size(right.value(`d${name}`).data)));
  if (!(worst.off > SAME * largest)) return [element("p", {}, "No parameter's gradient changes.")];
  return compared(lab, worst.name, worst.place, nudged(program, worst.name, worst.place, 1e-4));
}

/** The losses of two trainings, with the right line and with the mistake. */
function trainings(right, wrong) {
  const curves = [right.copy(), wrong.copy().run()].map((each) => Array.from({ length: STEPS + 1 }, () => {
    const { loss } = each;
    each.step();
    return loss;
  }));
  const finite = curves.flat().filter(Number.isFinite);
  const [low, high] = [Math.min(...finite), Math.min(Math.max(...finite), 4 * curves[0][0] + 1e-9)];
  const points = (losses) => losses.map((loss, k) => `${(k / STEPS) * 400},${110 - ((Math.min(loss, high) - low) / (high - low || 1)) * 100}`)
    .filter((_, k) => Number.isFinite(losses[k])).join(" ");
  const end = (losses) => digits(losses.at(-1));
  const label = `after ${STEPS} steps the loss is ${end(curves[0])} with the right line, ${end(curves[1])} with the mistake`;
  const svg = drawn("svg", { class: "chart small", viewBox: "0 0 400 120", role: "img", "aria-label": label },
    drawn("polyline", { points: points(curves[0]) }), drawn("polyline", { class: "wrong", points: points(curves[1]) }));
  return [element("p", {}, `${label[0].toUpperCase()}${label.slice(1)} (dashed).`), svg];
}
