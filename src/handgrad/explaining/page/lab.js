/** The page's training step at other numbers: what is changed, nudged, traced and trained, and what follows from it. */

import { digits, drawn } from "./dom.js";
import { indexOf, LiveProgram } from "./live.js";
import { switchOn } from "./mistake_panel.js";
import { drawPredictions } from "./predictions.js";
import { joinSetup, lossText } from "./setup.js";

const SETTLED = 150; // ms after which all is drawn again
const FRAMES = 3; // of a training, of which each draws some of the page
const MOST_POINTS = 400; // of the loss's curve

/**
 * Start the lab. `again` draws what shows numbers: "all" of it, what there is time for while a number is "moving", or what is
 * due at a frame of a training, by its number. Returns what the figures of a card need, or null.
 */
export function startLab(record, again) {
  const section = document.getElementById("live");
  record.fresh = (name) => record.ledger[name];
  if (!record.live || !section) return null;
  const lab = { program: new LiveProgram(record.live), record, losses: [], h: 1e-4, mistake: null, views: [] };
  window.handgrad = lab.program; // to be looked at in the browser's console
  let without = null; // the same program without the mistake that is on, at these numbers
  lab.right = () => (without ??= Object.assign(lab.program.copy(), { changed: new Map() }).run());
  record.fresh = (name) => fresh(lab, name);
  const draw = (what = "all") => {
    without = null;
    record.numbers += 1;
    showRecorded(lab);
    showTraining(lab, what);
    again(what);
  };
  lab.again = () => {
    lab.program.run();
    draw();
  };
  lab.moved = () => {
    lab.program.run();
    draw("moving");
    clearTimeout(lab.soon);
    lab.soon = setTimeout(draw, SETTLED, "all");
  };
  lab.load = (samples) => load(lab, samples);
  wireTraining(lab, draw);
  if (record.setup) joinSetup(record.setup, lab);
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
    draw(playing ? program.scalars.step : "all");
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
    switchOn(lab, null);
    lab.setup?.restart();
    lab.program.reset();
    draw();
  });
  rate.value = lab.program.scalars.learning_rate;
  const note = document.getElementById("rate-note");
  rate.addEventListener("input", () => {
    const suits = Number(rate.value) > 0 && Number.isFinite(Number(rate.value));
    rate.setAttribute("aria-invalid", !suits);
    note.hidden = suits;
    note.textContent = `Give a number above 0: ${lab.program.scalars.learning_rate} is used.`;
    if (!suits) return;
    lab.program.scalars.learning_rate = Number(rate.value);
    lab.moved();
  });
}

/** What was recorded is marked as that once the numbers are others; the loss at the top is that of the numbers at hand. */
function showRecorded({ program, mistake, setup }) {
  const given = program.given.arrays;
  const others = setup?.redrawn || Object.entries(program.arrays).some(([name, array]) => array.some((value, k) => value !== given[name][k]));
  const root = document.documentElement;
  if (root.hasAttribute("data-others") !== (others || Boolean(mistake))) root.toggleAttribute("data-others");
  const loss = document.getElementById("loss");
  if (loss && others) loss.textContent = digits(program.loss);
  else if (loss) loss.textContent = loss.dataset.recorded;
}

/** The loss on the training rows, and where there are such on a batch of them and on test rows. */
function lossesOf(lab) {
  return lab.setup?.losses() ?? { training: lab.program.loss, test: null, batch: null };
}

/** Loss, steps, the loss's curve, and what is predicted over one or two inputs, in coarser cells while a number moves. */
function showTraining(lab, what = "all") {
  const { program } = lab;
  const losses = lab.latest = lossesOf(lab);
  document.getElementById("live-loss").textContent = `${lossText(lab, losses)}${lab.mistake?.change ? `, with a mistake in ${lab.mistake.target}` : ""}`;
  drawCurve(document.getElementById("live-curve"), [...lab.losses, losses]);
  const canvas = document.getElementById("live-predictions");
  const due = typeof what !== "number" || what % FRAMES === 0;
  if (canvas && due) drawPredictions(program, canvas, what === "all" && document.getElementById("live-key"));
  if (typeof what !== "number" || what % FRAMES === 1) for (const view of lab.views) view();
}

/** A value's entry with the numbers of the program at hand. */
function fresh({ program, record }, name) {
  const entry = record.ledger[name];
  if (!(name in program.given.names) || !entry.sample || entry.numbers === record.numbers) return entry;
  const { shape, data } = program.value(name);
  let [sum, norm, zeros, bad, least, most] = [0, 0, 0, 0, Infinity, -Infinity];
  for (const value of data) {
    if (!Number.isFinite(value)) bad += 1;
    else {
      sum += value;
      norm += value * value;
      zeros += value === 0;
      least = Math.min(least, value);
      most = Math.max(most, value);
    }
  }
  const mean = sum / (data.length - bad || 1);
  return Object.assign(entry, { numbers: record.numbers, sample: { ...entry.sample, numbers: sampled(shape, data, entry.sample) },
    summary: { ...entry.summary, mean, norm: Math.sqrt(norm), least, most, zeros: zeros / data.length, not_finite: bad } });
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
  const most = known.reduce((found, loss) => Math.max(found, loss), 1e-9);
  const low = known.reduce((found, loss) => Math.min(found, loss), 0);
  const step = Math.ceil(losses.length / MOST_POINTS);
  const points = (of) => of.map((loss, k) => [k, loss]).filter(([k, loss]) => Number.isFinite(loss) && (k % step === 0 || k === of.length - 1))
    .map(([k, loss]) => `${((k / Math.max(of.length - 1, 1)) * 400).toFixed(1)},${(98 - ((loss - low) / (most - low)) * 94).toFixed(2)}`).join(" ");
  if (!place.firstChild) {
    place.append(drawn("svg", { class: "chart", viewBox: "0 0 400 100", preserveAspectRatio: "none", "aria-hidden": "true" },
      drawn("path", { class: "grid", d: "M0,98 H400" }), drawn("polyline"), drawn("polyline", { class: "test" })));
  }
  [losses, tests].forEach((of, k) => place.querySelectorAll("polyline")[k].setAttribute("points", points(of)));
  const text = `loss from ${digits(low)} to ${digits(most)} over ${losses.length - 1} steps${tests.some(Number.isFinite) ? ", of test rows dashed" : ""}`;
  place.setAttribute("aria-label", text);
  document.getElementById("curve-range").textContent = text;
}

/** A Jacobian of another row, at the numbers at hand; null where no line of the page makes its gradient. */
export function jacobianOfRow({ program }, jacobian, row) {
  const { output, gradient, outputSizes, inputSizes } = jacobian;
  const known = [`d${output}`, gradient].every((name) => program.given.names[name] !== undefined);
  return known ? { ...jacobian, sample: { shape: [...outputSizes, ...inputSizes], numbers: program.jacobian(`d${output}`, gradient, row) } } : null;
}
