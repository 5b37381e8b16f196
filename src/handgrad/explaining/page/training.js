/** Moving through training: loss, norms, weights, gradients, activations and the answers over two inputs. */

import { colourOf, colourOfClass, ink } from "./colour.js";
import { digits, element } from "./dom.js";
import { figure, most } from "./heatmap.js";

/** Wire the slider and the choice. Returns what draws everything again. */
export function moveThrough(record) {
  const slider = document.getElementById("moment");
  if (!slider) return () => {};
  const watched = document.getElementById("watched");
  fillChoice(watched, record);
  let charts = [];
  const draw = () => {
    const moment = Number(slider.value);
    const snapshot = record.snapshots[moment];
    const said = `epoch ${snapshot.epoch}, step ${snapshot.step}, loss ${digits(snapshot.loss)}`;
    document.getElementById("moment-text").textContent = said;
    slider.setAttribute("aria-valuetext", said);
    for (const chart of charts) chart.at(moment);
    showValues(record, moment, watched.value);
    showBoundary(record, snapshot);
    showFindings(snapshot);
  };
  const begin = () => {
    for (const chart of charts) chart.end();
    const norms = record.snapshots.map((snapshot) => snapshot.summaries[watched.value]?.norm ?? null);
    document.getElementById("norm-name").textContent = watched.value;
    charts = [
      curve("loss-chart", record, record.snapshots.map((snapshot) => snapshot.loss), "Loss"),
      curve("norm-chart", record, norms, `Norm of ${watched.value}`),
    ];
    draw();
  };
  slider.addEventListener("input", draw);
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

/** A curve over the steps, with a line at the moment. */
function curve(id, record, values, label) {
  const place = document.getElementById(id);
  const steps = record.snapshots.map((snapshot) => snapshot.step);
  let moment = 0;
  const mark = (plot) => {
    const x = plot.valToPos(steps[moment], "x", true);
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = ink("accent");
    ctx.lineWidth = devicePixelRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    if (values[moment] !== null) {
      ctx.beginPath();
      ctx.arc(x, plot.valToPos(values[moment], "y", true), 4 * devicePixelRatio, 0, 7);
      ctx.fill();
    }
    ctx.restore();
  };
  const axis = { stroke: ink("muted"), grid: { stroke: ink("line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  const size = () => ({ width: Math.max(place.clientWidth, 200), height: 190 });
  const plot = new uPlot({
    ...size(),
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false } },
    series: [{}, { stroke: ink("text"), width: 1.5, points: { show: false } }],
    axes: [axis, { ...axis, size: 56, values: (_, ticks) => ticks.map(digits) }],
    hooks: { draw: [mark] },
  }, [steps, values], place);
  const watcher = new ResizeObserver(() => plot.setSize(size()));
  watcher.observe(place);
  const at = (number) => {
    moment = number;
    place.setAttribute("aria-label", `${label} over ${steps.at(-1)} steps; here ${digits(values[number])}`);
    plot.redraw(false);
  };
  const end = () => {
    watcher.disconnect();
    plot.destroy();
  };
  return { at, end };
}

/** The value chosen, and its gradient or the value it belongs to, in the same colours at every moment. */
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
  place.replaceChildren(...(items.length ? [element("p", { class: "muted" }, "Seen at this moment"), element("ul", {}, ...items)] : []));
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
  const said = `first input ${x} across, second ${y} up; ${colour.text}`;
  document.getElementById("boundary-key").textContent = shapes ? `${said}. ${shapes}` : said;
  canvas.setAttribute("aria-label", `Answers of the network: ${said}`);
}

/** Classes have colours of their own; shares of a yes, and values, go from blue to orange. */
function colouring(answers) {
  if (answers.every(Number.isInteger)) return { of: colourOfClass, text: "a colour for each class" };
  if (answers.every((a) => a >= 0 && a <= 1)) return { of: (a) => colourOf(2 * a - 1, 1.6), text: "blue is no, orange is yes" };
  const limit = answers.reduce((found, a) => Math.max(found, Math.abs(a)), 0);
  return { of: (a) => colourOf(a, limit), text: "blue below zero, orange above" };
}

/** The rows of the batch: a form for each class, so that colour is not all that tells. */
function drawRows(context, record, { x_range: across, y_range: up }, size) {
  const [x, t] = [record.ledger.x?.sample, record.ledger.t?.sample];
  if (!x || !t || x.shape[1] !== 2 || x.steps[0] !== t.steps[0]) return "";
  context.fillStyle = ink("text");
  context.strokeStyle = ink("surface");
  const width = t.numbers.length / x.shape[0];
  for (let row = 0; row < x.shape[0]; row++) {
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
