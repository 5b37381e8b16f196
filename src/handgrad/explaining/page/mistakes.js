/** Mistakes that fit a backward line, switched on: what they do to its numbers, to the nudge and to a training. */

import { digits, drawn, element, shapeText } from "./dom.js";
import { product } from "./live.js";

const STEPS = 60; // of the two trainings

/** The mistakes that fit a line: each with its catalogue's code, and what it makes of the right result or the error it ends in. */
export function mistakesOf({ program, record }, target) {
  const number = program.given.names[target];
  const { operation, inputs } = program.given.values[number];
  const { shape, data } = program.results[number];
  const scaled = (by) => (right) => ({ shape, data: right.data.map((value) => value * by) });
  const found = [];
  if (operation === "product" && shape.length === 2) found.push(...ofProduct(program, target, shape, inputs));
  if (operation === "sum") {
    const added = program.results[inputs[0]].data.length / data.length;
    found.push({ code: "batch-mean-vs-sum", name: "the mean in place of the sum", change: scaled(1 / added) });
  }
  const leaves = program.leaves(number, 0);
  const upstream = leaves.find((part) => part.name.startsWith("d") && `${part.shape}` === `${shape}`);
  if (upstream && !["product", "sum"].includes(operation) && leaves.length > 1) {
    const from = program.given.names[upstream.name];
    const { reads } = record.lines.find((line) => line.target === target);
    if (operation === "add" && reads.every((name) => record.ledger[name]?.kind === "gradient")) {
      found.push(...reads.map((name) => leftOut(name, reads.filter((other) => other !== name))));
    }
    else {
      found.push({ code: "missing-local-derivative", name: `the local derivative left out: ${upstream.name} unchanged`, change: (right, operands, own) => own.results[from] });
      found.push(...ofActivation({ program, record }, target, number, upstream.name));
    }
  }
  for (const name of new Set(leaves.map((part) => part.name))) {
    const others = leaves.map((part) => part.name).filter((other) => other !== name);
    if (program.given.parameters.includes(name)) found.push(updatedFirst(program, number, name, others));
  }
  found.push({ code: "wrong-sign", name: "the sign turned", change: scaled(-1) });
  return found;
}

/** An operation's result where some values are others, and the values that are pinned are what they were. */
function recomputed(own, number, pinned, others) {
  const changed = new Map(pinned.map((name) => [own.given.names[name], own.value(name)]).concat(others).map(([k, result]) => [k, () => result]));
  return Object.assign(own.copy(), { changed }).run(number).results[number];
}

/** One of the gradients that are added up is forgotten. */
function leftOut(name, others) {
  const change = ({ shape, data }, operands, own) => ({ shape, data: data.map((_, k) => others.reduce((sum, other) => sum + own.value(other).data[k], 0)) });
  return { code: "missing-term", name: `${name} left out`, change };
}

/** The derivative of an activation, taken at what comes out of it. */
function ofActivation({ program, record }, target, number, upstream) {
  const [output, input] = [record.lines.find((line) => line.target === target)?.undoes, record.ledger[target]?.gradient_of];
  const place = program.given.names[input];
  if (!(output in program.given.names) || place === undefined || `${program.value(output).shape}` !== `${program.value(input).shape}`) return [];
  return [{ code: "wrong-evaluation-point", name: `the derivative taken at ${output}, not at ${input}`,
    change: (right, operands, own) => recomputed(own, number, [upstream], [[place, own.value(output)]]) }];
}

/** The weights are updated before the error is passed on through them. */
function updatedFirst(program, number, name, others) {
  const change = (right, operands, own) => {
    const after = Object.assign(own.copy(), { changed: new Map() }).run();
    return recomputed(own, number, others, [[program.given.names[name], after.results[program.given.assigned[name]]]]);
  };
  return { code: "stale-or-mutated-state", name: `${name} updated before this line`, change };
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
    const [code, name] = ["transposed", "the transpose left out"];
    const text = `${shapeText(a)} @ ${shapeText(b)}`;
    if (a[1] !== b[0]) found.push({ code, name, error: `${text}: ${a[1]} columns do not meet ${b[0]} rows` });
    else if (`${[a[0], b[1]]}` !== `${shape}`) found.push({ code, name, error: `${text} is ${shapeText([a[0], b[1]])}, and ${target} has ${shapeText(shape)}` });
    else found.push({ code, name, change: (result, operands, own) => ({ shape, data: product(shape, own.results[chosen[0]], own.results[chosen[1]]) }) });
  });
  const star = { code: "elementwise-instead-of-matmul", name: "* in place of @" };
  if (`${left}` !== `${right}`) found.push({ ...star, error: `${shapeText(left)} * ${shapeText(right)}: these shapes are not multiplied entry by entry` });
  else found.push({ ...star, change: (result, [a, b]) => ({ shape, data: a.data.map((value, k) => value * b.data[k]) }) });
  if (left[1] === program.n && values[inputs[0]].shape[1] === "n") {
    found.push({ code: "batch-mean-vs-sum", name: "the mean over the rows in place of the sum", change: (result) => ({ shape, data: result.data.map((value) => value / left[1]) }) });
    found.push({ code: "averaged-batch", name: "the rows averaged before the product", change: (result, [a, b]) => ({ shape, data: averagedFirst(shape, a, b) }) });
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
  const buttons = mistakesOf(lab, target).map((mistake) => {
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
  if (on) box.append(element("p", { class: "muted" }, "handgrad check names it ", element("code", {}, on.code), "; its page is ", element("code", {}, `docs/mistakes/${on.code}.md`)));
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
  const text = off > 1e-12 ? `${target} is off by ${digits(off)} times its size` : `${target} is the same here: nothing is lost`;
  return [element("p", {}, `${text}; ${label} (dashed).`), off > 1e-12 ? element("p", {}, "A nudge of a weight disagrees with its gradient now.") : "", svg];
}
