/** Mistakes that fit a backward line, switched on: what they do to its numbers, to the nudge and to a training. */

import { digits, drawn, element, shapeText } from "./dom.js";
import { product } from "./live.js";

const STEPS = 60; // of the two trainings

/** The mistakes that fit a line: each with what it makes of the right result, or with the error it ends in. */
export function mistakesOf(program, target) {
  const number = program.given.names[target];
  const { operation, inputs } = program.given.values[number];
  const { shape, data } = program.results[number];
  const scaled = (by) => (right) => ({ shape, data: right.data.map((value) => value * by) });
  const found = [];
  if (operation === "product" && shape.length === 2) found.push(...ofProduct(program, target, shape, inputs));
  if (operation === "sum") {
    const added = program.results[inputs[0]].data.length / data.length;
    found.push({ name: "the mean in place of the sum", change: scaled(1 / added) });
  }
  const upstream = program.leaves(number, 0).find((part) => part.name.startsWith("d") && `${part.shape}` === `${shape}`);
  if (upstream && !["product", "sum"].includes(operation) && program.leaves(number, 0).length > 1) {
    const from = program.given.names[upstream.name];
    found.push({ name: `the local derivative left out: ${upstream.name} unchanged`, change: (right, operands, own) => own.results[from] });
  }
  found.push({ name: "the sign turned", change: scaled(-1) });
  return found;
}

function ofProduct(program, target, shape, inputs) {
  const found = [];
  const { values } = program.given;
  const [left, right] = inputs.map((input) => program.results[input].shape);
  const plain = inputs.map((input) => (values[input].operation === "transpose" ? values[input].inputs[0] : input));
  plain.forEach((input, k) => {
    if (input === inputs[k]) return;
    const chosen = inputs.map((own, each) => (each === k ? input : own));
    const [a, b] = chosen.map((each) => program.results[each].shape);
    const name = "the transpose left out";
    const text = `${shapeText(a)} @ ${shapeText(b)}`;
    if (a[1] !== b[0]) found.push({ name, error: `${text}: ${a[1]} columns do not meet ${b[0]} rows` });
    else if (`${[a[0], b[1]]}` !== `${shape}`) found.push({ name, error: `${text} is ${shapeText([a[0], b[1]])}, and ${target} has ${shapeText(shape)}` });
    else found.push({ name, change: (result, operands, own) => ({ shape, data: product(shape, own.results[chosen[0]], own.results[chosen[1]]) }) });
  });
  if (`${left}` !== `${right}`) found.push({ name: "* in place of @", error: `${shapeText(left)} * ${shapeText(right)}: these shapes are not multiplied entry by entry` });
  if (left[1] === program.n && values[inputs[0]].shape[1] === "n") {
    found.push({ name: "the mean over the rows in place of the sum", change: (result) => ({ shape, data: result.data.map((value) => value / left[1]) }) });
    found.push({ name: "the rows averaged before the product", change: (result, [a, b]) => ({ shape, data: averagedFirst(shape, a, b) }) });
  }
  return found;
}

/** The averages over the rows, multiplied: every row of x meets every row of the gradient. */
function averagedFirst([rows, columns], a, b) {
  const count = a.shape[1];
  const sumOf = (place) => Array.from({ length: count }, (_, n) => place(n)).reduce((sum, value) => sum + value, 0);
  const across = Array.from({ length: columns }, (_, c) => sumOf((n) => b.data[n * columns + c]));
  return Float64Array.from({ length: rows * columns }, (_, k) => (sumOf((n) => a.data[Math.floor(k / columns) * count + n]) * across[k % columns]) / count);
}

/** The buttons of a line's mistakes, and what the one that is on does. */
export function mistakePanel(lab, target) {
  const { program } = lab;
  const number = program.given.names[target];
  const box = element("div", { class: "mistakes" });
  const on = lab.mistake?.target === target ? lab.mistake : null;
  const buttons = mistakesOf(program, target).map((mistake) => {
    const pressed = on?.name === mistake.name;
    const button = element("button", { type: "button", class: "quiet", "aria-pressed": pressed }, mistake.name);
    button.addEventListener("click", () => {
      program.changed.clear();
      lab.mistake = pressed ? null : { ...mistake, target };
      if (lab.mistake?.change) program.changed.set(number, mistake.change);
      lab.again();
    });
    return button;
  });
  box.append(element("p", { class: "mistake-buttons" }, ...buttons));
  if (lab.mistake && !on) box.append(element("p", { class: "muted" }, `a mistake is on in ${lab.mistake.target}: ${lab.mistake.name}`));
  if (on?.error) box.append(element("p", { class: "error" }, on.error));
  else if (on) box.append(...effect(lab, target));
  return box;
}

/** How far the line is off, and two trainings from the weights at hand. */
function effect(lab, target) {
  const { program } = lab;
  const right = Object.assign(program.copy(), { changed: new Map() }).run();
  const wrong = program.copy().run();
  const [a, b] = [right, wrong].map((each) => each.value(target).data);
  const size = (data) => Math.hypot(...data);
  const off = size(a.map((value, k) => value - b[k])) / (size(a) || 1);
  const curves = [right, wrong].map((each) => Array.from({ length: STEPS + 1 }, () => {
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
  return [element("p", {}, `${target} is off by ${digits(off)} times its size; ${label} (dashed). A nudge of a weight disagrees with its gradient now.`), svg];
}
