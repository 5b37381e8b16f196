/** Two losses beside a number, their difference quotient, and the gradient that the lines give. */

import { at } from "./arithmetic.js";
import { digits, drawn, element } from "./dom.js";

const BESIDE = 41; // of the loss's curve through an entry
const APART = 1e-4; // of the larger of two slopes that agree

/** The losses at w - h and w + h, and their difference quotient. */
export function nudged(program, name, place, h) {
  const [below, above] = [-h, h].map((by) => lossAt(program, name, place, by));
  return { h, below, above, quotient: (above - below) / (2 * h) };
}

function lossAt(program, name, place, by) {
  const array = program.arrays[name].slice();
  array[place] += by;
  return program.at({ [name]: array }, "loss").loss;
}

/** The quotient beside the gradient by the lines, and whether they agree. */
export function compared({ program, mistake }, name, place, { h, below, above, quotient }) {
  const entry = at(name, program.value(name).shape, place);
  const table = element("dl", { class: "facts nudge" });
  const fact = (term, text) => table.append(element("div", {}, element("dt", {}, term), element("dd", {}, element("code", {}, text))));
  fact(`(L(w + h) − L(w − h)) / 2h, w = ${entry}`, `(${above.toPrecision(8)} − ${below.toPrecision(8)}) / ${2 * h} = ${quotient.toPrecision(6)}`);
  const gradient = gradientOf(program, name, place);
  if (gradient === null) return [table];
  fact(`d${entry}, by the lines`, gradient.toPrecision(6));
  const rounding = (1e-12 * (1 + Math.abs(program.loss))) / h;
  const agree = Math.abs(quotient - gradient) <= APART * Math.max(Math.abs(quotient), Math.abs(gradient)) + rounding;
  const why = mistake?.change ? `: a mistake is on in ${mistake.target}` : ": h is too large here, too small, or across a kink";
  return [table, element("p", { class: "verdict", "data-agree": agree }, agree ? "✓ they agree" : `✗ they disagree${why}`)];
}

function gradientOf(program, name, place) {
  return program.given.names[`d${name}`] === undefined ? null : program.value(`d${name}`).data[place];
}

/** The loss as an entry moves, with the gradient as a tangent. */
export function lossCurve(program, name, place) {
  const start = program.arrays[name][place];
  const reach = Math.max(Math.abs(start), 1);
  const losses = Array.from({ length: BESIDE }, (_, k) => lossAt(program, name, place, ((2 * k) / (BESIDE - 1) - 1) * reach));
  const known = losses.filter(Number.isFinite);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const up = (loss) => 100 - ((loss - low) / (high - low || 1)) * 90;
  const tangent = (gradientOf(program, name, place) ?? nudged(program, name, place, 1e-4).quotient) * reach * 0.35;
  const points = losses.map((loss, k) => `${(k / (BESIDE - 1)) * 400},${up(loss)}`).filter((_, k) => Number.isFinite(losses[k]));
  return drawn("svg", { class: "chart small", viewBox: "0 0 400 120", role: "img", "aria-label": `The loss as ${name} moves from ${digits(start - reach)} to ${digits(start + reach)}` },
    drawn("polyline", { points: points.join(" ") }),
    drawn("path", { class: "mark", d: `M130,${up(program.loss - tangent)} L270,${up(program.loss + tangent)}` }),
    drawn("circle", { cx: 200, cy: up(program.loss), r: 4 }),
    drawn("text", { x: 0, y: 117 }, digits(start - reach)), drawn("text", { x: 400, y: 117, "text-anchor": "end" }, digits(start + reach)));
}
