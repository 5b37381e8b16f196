/** Moving through training: loss, norms, weights, gradients, activations and the answers over two inputs. */

import { colourOf, colourOfClass, digits, drawn, element, ink } from "./dom.js";
import { figure, most } from "./heatmap.js";

/** Wire the slider and the choice. Returns what draws everything again. */
export function moveThrough(record) {
  const slider = document.getElementById("moment");
  if (!slider) return () => {};
  const watched = document.getElementById("watched");
  fillChoice(watched, record);
  const steps = record.snapshots.map((snapshot) => snapshot.step);
  let charts = [];
  const draw = () => {
    const moment = Number(slider.value);
    const snapshot = record.snapshots[moment];
    const text = `epoch ${snapshot.epoch}, step ${snapshot.step}, loss ${digits(snapshot.loss)}`;
    document.getElementById("moment-text").textContent = text;
    slider.setAttribute("aria-valuetext", text);
    for (const moveTo of charts) moveTo(moment);
    showValues(record, moment, watched.value);
    showBoundary(record, snapshot);
    showFindings(snapshot);
  };
  const begin = () => {
    const norms = record.snapshots.map((snapshot) => snapshot.summaries[watched.value]?.norm ?? null);
    document.getElementById("norm-name").textContent = watched.value;
    charts = [
      curve("loss-chart", steps, record.snapshots.map((snapshot) => snapshot.loss), "Loss"),
      curve("norm-chart", steps, norms, `Norm of ${watched.value}`),
    ];
    draw();
  };
  slider.addEventListener("input", () => {
    draw();
    record.lab?.load(record.snapshots[Number(slider.value)].samples);
  });
  watched.addEventListener("change", begin);
  begin();
  return begin;
}

function fillChoice(select, record) {
  const names = [...new Set(record.snapshots.flatMap((snapshot) => Object.keys(snapshot.samples)))];
  const groups = { parameter: "Weights", gradient: "Gradients", value: "Activations" };
  for (const [kind, label] of Object.entries(groups)) {
    const members = names.filter((name) => (record.ledger[name]?.kind ?? "value") === kind);
    if (members.length) select.append(element("optgroup", { label }, ...members.map((name) => element("option", { value: name }, name))));
  }
}

/** A curve over the steps, with a mark at one of them. Returns what moves the mark. */
function curve(id, steps, values, label) {
  const place = document.getElementById(id);
  const known = values.filter((value) => value !== null);
  const [x, y] = [axis(steps, 58, 390), axis(known.length ? known : [0, 1], 162, 10)];
  const svg = drawn("svg", { class: "chart", viewBox: "0 0 400 190", "aria-hidden": "true" });
  for (const tick of y.ticks) {
    svg.append(drawn("path", { class: "grid", d: `M58,${y.at(tick)} H390` }), drawn("text", { x: 52, y: y.at(tick) + 4, "text-anchor": "end" }, digits(tick)));
  }
  for (const tick of x.ticks) svg.append(drawn("text", { x: x.at(tick), y: 182, "text-anchor": "middle" }, digits(tick)));
  const points = steps.flatMap((step, k) => (values[k] === null ? [] : [`${x.at(step)},${y.at(values[k])}`]));
  const [line, dot] = [drawn("path", { class: "mark" }), drawn("circle", { r: 4 })];
  svg.append(drawn("polyline", { points: points.join(" ") }), line, dot);
  place.replaceChildren(svg);
  return (moment) => {
    place.setAttribute("aria-label", `${label} over ${steps.at(-1)} steps; here ${digits(values[moment])}`);
    line.setAttribute("d", `M${x.at(steps[moment])},10 V162`);
    dot.setAttribute("cx", x.at(steps[moment]));
    dot.setAttribute("cy", y.at(values[moment] ?? 0));
    dot.toggleAttribute("hidden", values[moment] === null);
  };
}

/** An axis between two ends in the drawing, from a round number to a round one, with ticks. */
function axis(numbers, from, to) {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const span = high - low || Math.abs(high) || 1;
  const power = 10 ** Math.floor(Math.log10(span / 4));
  const step = power * [1, 2, 5, 10].find((times) => times * power >= span / 4);
  const [first, last] = [Math.floor(low / step), Math.max(Math.ceil(high / step), Math.floor(low / step) + 1)];
  const ticks = Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
  return { ticks, at: (number) => from + ((number / step - first) / (last - first)) * (to - from) };
}

/** The value chosen, and its gradient or the value it belongs to, in the same colours at every snapshot. */
function showValues(record, moment, name) {
  const entry = record.ledger[name];
  const names = [name, entry?.gradient || entry?.gradient_of].filter((other) => other && record.snapshots[moment].samples[other]);
  document.getElementById("watched-values").replaceChildren(...names.map((other) => {
    const slot = element("div", { class: "slot" });
    const limit = Math.max(...record.snapshots.map((snapshot) => (snapshot.samples[other] ? most(snapshot.samples[other]) : 0)));
    const { samples, summaries } = record.snapshots[moment];
    const then = { ...record.ledger[other], summary: summaries[other] };
    slot.append(figure(other, then, { sample: samples[other], limit, pixels: record.pixels }));
    return slot;
  }));
}

function showFindings({ health }) {
  const place = document.getElementById("moment-findings");
  const items = health.findings.map(({ code, place: at, evidence }) =>
    element("li", {}, element("b", {}, code.replaceAll("-", " ")), ` at ${at}: ${evidence}`));
  place.replaceChildren(...(items.length ? [element("p", { class: "muted" }, "Found at this step"), element("ul", {}, ...items)] : []));
}

function showBoundary(record, { boundary }) {
  const canvas = document.getElementById("boundary");
  if (!canvas || !boundary) return;
  const size = 300;
  canvas.width = canvas.height = size * devicePixelRatio;
  const context = canvas.getContext("2d");
  context.scale(devicePixelRatio, devicePixelRatio);
  const colour = colouring(boundary.answers);
  const [wide, high] = [size / boundary.columns, size / boundary.rows];
  boundary.answers.forEach((answer, k) => {
    const [row, column] = [Math.floor(k / boundary.columns), k % boundary.columns];
    context.fillStyle = `rgb(${colour.of(answer)})`;
    context.fillRect(column * wide, size - (row + 1) * high, wide + 0.6, high + 0.6);
  });
  const shapes = drawRows(context, record, boundary, size);
  const [x, y] = [boundary.x_range, boundary.y_range].map((range) => range.map(digits).join(" to "));
  const text = `first input ${x} across, second ${y} up; ${colour.text}`;
  document.getElementById("boundary-key").textContent = shapes ? `${text}. ${shapes}` : text;
  canvas.setAttribute("aria-label", `Predictions of the network: ${text}`);
}

/** Classes have colours of their own; shares of a yes, and values, go from blue to orange. */
function colouring(answers) {
  if (answers.every(Number.isInteger)) return { of: colourOfClass, text: "a colour for each class" };
  if (answers.every((a) => a >= 0 && a <= 1)) return { of: (a) => colourOf(2 * a - 1, 1.6), text: "blue is no, orange is yes" };
  const limit = answers.reduce((found, a) => Math.max(found, Math.abs(a)), 0);
  return { of: (a) => colourOf(a, limit), text: "blue below zero, orange above" };
}

/** The rows of the batch: a shape for each class, so that colour is not all that tells them apart. */
function drawRows(context, record, { x_range: across, y_range: up }, size) {
  const [x, t] = ["x", "t"].map((name) => record.ledger[name] && record.fresh(name).sample);
  if (!x || !t || x.shape[1] !== 2) return "";
  context.fillStyle = ink("text");
  context.strokeStyle = ink("surface");
  const width = t.numbers.length / t.shape[0];
  for (let row = 0; row < Math.min(x.shape[0], t.shape[0]); row++) {
    const px = ((x.numbers[2 * row] - across[0]) / (across[1] - across[0])) * size;
    const py = size - ((x.numbers[2 * row + 1] - up[0]) / (up[1] - up[0])) * size;
    context.beginPath();
    if (t.numbers[row * width] > 0.5) context.rect(px - 3.5, py - 3.5, 7, 7);
    else context.arc(px, py, 3.8, 0, 7);
    context.fill();
    context.stroke();
  }
  return "Circles are rows of class 0, squares the others.";
}
