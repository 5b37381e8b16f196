/** The page's training step at other numbers: what is changed, nudged, traced and trained, and what follows from it. */

import { digits, drawn, element } from "./dom.js";
import { indexOf, LiveProgram } from "./live.js";
import { drawPredictions, overPlane, unitPicture } from "./predictions.js";
import { joinSetup, lossText } from "./setup.js";

const MOST_TERMS = 12; // of a sum that are written out

/** Start the lab. `again` draws what shows numbers, the network too unless it is told to be quick. Returns what the figures of a card need, or null. */
export function startLab(record, again) {
  const section = document.getElementById("live");
  if (!record.live || !section) return null;
  const lab = { program: new LiveProgram(record.live), record, losses: [], h: 1e-4, views: [] };
  window.handgrad = lab.program; // to be looked at in the browser's console
  const draw = (quick = false) => {
    showTraining(lab, quick);
    updateLedger(lab);
    again(quick);
  };
  lab.again = () => {
    lab.program.run();
    draw();
  };
  lab.load = (samples) => load(lab, samples);
  wireTraining(lab, draw);
  if (record.setup) joinSetup(record.setup, lab);
  if (record.setup?.reopened) updateLedger(lab); // its record has no numbers
  showTraining(lab);
  return lab;
}

/** Take the weights of a snapshot, where it has all of them, in six digits. */
function load(lab, samples) {
  const { program } = lab;
  const { parameters } = program.given;
  if (!parameters.every((name) => samples[name]?.numbers.length === program.arrays[name].length)) return;
  for (const name of parameters) program.arrays[name] = Float64Array.from(samples[name].numbers);
  lab.losses = [];
  lab.again();
}

/** Play, pause, one step, reset, and the learning rate. */
function wireTraining(lab, draw) {
  const { program } = lab;
  const [step, reset, rate] = ["one-step", "reset", "rate"].map((id) => document.getElementById(id));
  const plays = [...document.querySelectorAll("[data-play]")];
  let playing = 0;
  const once = () => {
    lab.losses.push(lab.latest);
    lab.setup?.nextBatch();
    lab.program.step();
    if (!Number.isFinite(lab.program.loss)) pause();
  };
  const pause = () => {
    cancelAnimationFrame(playing);
    playing = 0;
    for (const button of plays) button.textContent = "▶ Train";
  };
  lab.pause = pause;
  const frame = () => {
    playing = requestAnimationFrame(frame);
    once();
    // the whole page at every fourth step, and at the last
    draw(playing !== 0 && program.scalars.step % 4 !== 0);
  };
  for (const button of plays) {
    button.addEventListener("click", () => {
      if (playing) {
        pause();
        draw();
        return;
      }
      for (const each of plays) each.textContent = "❚❚ Pause";
      playing = requestAnimationFrame(frame);
    });
  }
  step.addEventListener("click", () => {
    pause();
    once();
    draw();
  });
  reset.addEventListener("click", () => {
    pause();
    lab.losses = [];
    lab.setup?.restart();
    lab.program.reset();
    draw();
  });
  rate.value = lab.program.scalars.learning_rate;
  rate.addEventListener("input", () => {
    if (Number(rate.value) > 0) lab.program.scalars.learning_rate = Number(rate.value);
    lab.again();
  });
}

/** The loss on the training rows, and where there are such on a batch of them and on test rows. */
function lossesOf(lab) {
  return lab.setup?.losses() ?? { training: lab.program.loss, test: null, batch: null };
}

/** Loss, steps, the loss's curve, and what is predicted over one or two inputs. */
function showTraining(lab, quick = false) {
  const { program } = lab;
  const losses = lab.latest = lossesOf(lab);
  document.getElementById("live-loss").textContent = lossText(lab, losses);
  drawCurve(document.getElementById("live-curve"), [...lab.losses, losses]);
  const canvas = document.getElementById("live-predictions");
  if (canvas && !quick) drawPredictions(program, canvas, document.getElementById("live-key"));
  if (!quick) for (const view of lab.views) view();
}

/** The numbers of the ledger are those of the program, wherever they are shown. */
function updateLedger({ program, record }) {
  for (const [name, entry] of Object.entries(record.ledger)) {
    if (!(name in program.given.names) || !entry.sample) continue;
    const { shape, data } = program.value(name);
    const taken = sampled(shape, data, entry.sample);
    entry.sample = { ...entry.sample, numbers: taken };
    const finite = Array.from(data).filter(Number.isFinite);
    const mean = finite.reduce((sum, value) => sum + value, 0) / (finite.length || 1);
    entry.summary = { ...entry.summary, mean, norm: Math.hypot(...finite), least: Math.min(...finite), most: Math.max(...finite),
      zeros: finite.filter((value) => value === 0).length / data.length, not_finite: data.length - finite.length };
  }
}

/** The entries of a whole array that its sample has. */
function sampled(shape, data, sample) {
  const width = sample.shape.reduce((product, size) => product * size, 1);
  if (width === data.length) return Array.from(data, (value) => (Number.isFinite(value) ? value : null));
  return Array.from({ length: width }, (_, k) => {
    const place = indexOf(sample.shape, k).reduce((at, index, axis) => at * shape[axis] + index, 0);
    return Number.isFinite(data[place]) ? data[place] : null;
  });
}

function drawCurve(place, every) {
  const [losses, tests] = ["training", "test"].map((name) => every.map((each) => each[name]));
  const known = [...losses, ...tests].filter(Number.isFinite);
  const most = Math.max(...known, 1e-9);
  const low = Math.min(0, ...known);
  const points = (of) => of.map((loss, k) => `${(k / Math.max(of.length - 1, 1)) * 400},${98 - ((loss - low) / (most - low)) * 94}`)
    .filter((_, k) => Number.isFinite(of[k])).join(" ");
  const svg = drawn("svg", { class: "chart", viewBox: "0 0 400 100", preserveAspectRatio: "none", "aria-hidden": "true" },
    drawn("path", { class: "grid", d: "M0,98 H400" }),
    drawn("polyline", { points: points(losses) }), drawn("polyline", { class: "test", points: points(tests) }));
  place.replaceChildren(svg);
  const text = `loss from ${digits(low)} to ${digits(most)} over ${losses.length - 1} steps${tests.some(Number.isFinite) ? ", of test rows dashed" : ""}`;
  place.setAttribute("aria-label", text);
  document.getElementById("curve-range").textContent = text;
}

/** A Jacobian of another row, at the numbers at hand; null where no line of the page makes its gradient. */
export function jacobianOfRow({ program, record }, jacobian, row) {
  const { output, input, outputSizes, inputSizes } = jacobian;
  const line = record.lines.find(({ undoes, target }) => undoes === output && record.ledger[target]?.gradient_of === input);
  const known = [`d${output}`, line?.target].every((name) => program.given.names[name] !== undefined);
  return known ? { ...jacobian, sample: { shape: [...outputSizes, ...inputSizes], numbers: program.jacobian(`d${output}`, line.target, row) } } : null;
}

/** What can be done with one entry: changed and nudged where it is given, traced where a line makes it. */
export function entryPanel(lab, name, place) {
  const { program } = lab;
  if (!(name in program.given.names)) return element("p", { class: "muted" }, "not computed in this page");
  const { shape, data } = program.value(name);
  const title = element("p", { class: "entry-title" }, element("code", {}, `${at(name, shape, place)} = ${digits(data[place])}`));
  const panel = element("div", { class: "entry", "aria-live": "polite" }, title);
  if (name in program.arrays) panel.append(...change(lab, name, place));
  else panel.append(trace(program, name, place));
  const forward = lab.record.lines.some((line) => line.target === name && line.phase === "forward");
  if (forward && overPlane(program) && shape.length === 2) panel.append(unitPicture(program, name, place % shape[1]));
  return panel;
}

function at(name, shape, place) {
  return shape.length ? `${name}[${indexOf(shape, place).join(", ")}]` : name;
}

/** An entry's own number and slider, and beside its gradient the slope between two nudged losses. */
function change(lab, name, place) {
  const { program } = lab;
  const start = program.arrays[name][place];
  const whole = lab.record.ledger[name]?.dtype.startsWith("int");
  const number = element("input", { type: "number", step: whole ? 1 : "any", value: start, "aria-label": `${name}, number` });
  const reach = Math.max(2 * Math.abs(start), 1);
  const slider = element("input", { type: "range", min: start - reach, max: start + reach, step: whole ? 1 : reach / 200, value: start, "aria-label": `${name}, slider` });
  const slope = element("div");
  const set = (value) => {
    if (!Number.isFinite(value)) return;
    program.arrays[name] = program.arrays[name].slice();
    program.arrays[name][place] = whole ? Math.max(0, Math.round(value)) : value;
    lab.again();
    if (!whole) slope.replaceChildren(...nudge(lab, name, place));
  };
  number.addEventListener("input", () => set((slider.value = number.value, Number(number.value))));
  slider.addEventListener("input", () => set((number.value = slider.value, Number(slider.value))));
  if (!whole) slope.replaceChildren(...nudge(lab, name, place));
  return [element("p", { class: "change" }, number, slider), slope];
}

/** The loss at w - h and w + h, their difference quotient, the gradient, and the loss's curve through the entry. */
function nudge(lab, name, place) {
  const { program } = lab;
  const moved = (by) => {
    const array = program.arrays[name].slice();
    array[place] += by;
    return program.at({ [name]: array }, "loss").loss;
  };
  const h = lab.h;
  const [below, above] = [moved(-h), moved(h)];
  const quotient = (above - below) / (2 * h);
  const gradient = program.given.names[`d${name}`] === undefined ? null : program.value(`d${name}`).data[place];
  const own = element("select", { "aria-label": "h" }, ...[1, 0.1, 1e-2, 1e-4, 1e-6].map((value) => {
    const option = element("option", { value }, `h = ${value}`);
    option.selected = value === h;
    return option;
  }));
  const table = element("dl", { class: "facts nudge" });
  const fact = (term, text) => table.append(element("div", {}, element("dt", {}, term), element("dd", {}, element("code", {}, text))));
  fact("(L(w + h) − L(w − h)) / 2h", `(${above.toPrecision(8)} − ${below.toPrecision(8)}) / ${2 * h} = ${quotient.toPrecision(6)}`);
  if (gradient !== null) fact(`d${name}, by the lines`, gradient.toPrecision(6));
  own.addEventListener("change", () => {
    lab.h = Number(own.value);
    table.parentElement.replaceChildren(...nudge(lab, name, place));
  });
  const start = program.arrays[name][place];
  const reach = Math.max(Math.abs(start), 1);
  const losses = Array.from({ length: 41 }, (_, k) => moved((k / 20 - 1) * reach));
  const [low, high] = [Math.min(...losses), Math.max(...losses)];
  const up = (loss) => 100 - ((loss - low) / (high - low || 1)) * 90;
  const tangent = (gradient ?? quotient) * reach * 0.35;
  const svg = drawn("svg", { class: "chart small", viewBox: "0 0 400 120", role: "img", "aria-label": `The loss as ${name} moves from ${digits(start - reach)} to ${digits(start + reach)}` },
    drawn("polyline", { points: losses.map((loss, k) => `${k * 10},${up(loss)}`).join(" ") }),
    drawn("path", { class: "mark", d: `M130,${up(program.loss - tangent)} L270,${up(program.loss + tangent)}` }),
    drawn("circle", { cx: 200, cy: up(program.loss), r: 4 }),
    drawn("text", { x: 0, y: 117 }, digits(start - reach)), drawn("text", { x: 400, y: 117, "text-anchor": "end" }, digits(start + reach)));
  return [element("p", {}, "Nudged by ", own), table, svg];
}

/** An entry written out: the terms that are added up, each the product of its factors, with their numbers. */
function trace(program, name, place) {
  const number = program.given.names[name];
  const terms = program.terms(number, place);
  const { operation } = program.given.values[number];
  const box = element("div", { class: "trace" });
  const label = (part) => (part.name ? at(part.name, part.shape, part.place) : "·");
  if (operation === "product" || operation === "sum") {
    box.append(element("p", {}, operation === "product" ? `${terms.length} products, added up:` : `${terms.length} numbers, added up:`));
    const body = element("tbody");
    let sum = 0;
    terms.forEach((factors, k) => {
      const value = factors.reduce((product, part) => product * part.value, 1);
      sum += value;
      if (k >= MOST_TERMS && k < terms.length - 1) return;
      const skipped = k === terms.length - 1 && terms.length > MOST_TERMS + 1;
      if (skipped) body.append(element("tr", {}, element("td", { colspan: 3, class: "muted" }, `… ${terms.length - MOST_TERMS - 1} more`)));
      body.append(element("tr", {}, element("td", {}, element("code", {}, factors.map(label).join(" · "))),
        element("td", {}, factors.length > 1 ? factors.map((part) => digits(part.value)).join(" · ") : ""),
        element("td", { class: "right" }, digits(value))));
    });
    body.append(element("tr", {}, element("th", { colspan: 2, scope: "row" }, "Σ"), element("td", { class: "right" }, digits(sum))));
    box.append(element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Terms" }, element("table", {}, body)));
  } else {
    const parts = program.leaves(number, place);
    const more = parts.length > MOST_TERMS ? ` and ${parts.length - MOST_TERMS} more` : "";
    if (parts.length) {
      box.append(element("p", {}, "computed from ", ...parts.slice(0, MOST_TERMS).map((part) => element("code", {}, `${label(part)} = ${digits(part.value)}  `)), more));
    }
  }
  return box;
}
