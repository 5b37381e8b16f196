/**
 * What is learned, and by which network: data, inputs, layers, activation, batch, weight decay.
 *
 * Every structure has a page of its own, with its program, cards and derivations, in the text `structures`; choosing one writes
 * its page in place of this one. Its sizes are different primes: a number there that is a product of them is written for the sizes at hand.
 */

import { DATA_SETS, rowsOf, FEATURES, generator, inputsOf, shuffled } from "./data_sets.js";
import { digits, element } from "./dom.js";

const OPENING = {
  data: "moons", noise: 0.1, rows: 64, test: 0, dataSeed: 1, features: ["x", "y"], widths: [8, 8], activation: "tanh-relu",
  batch: 0, decay: 0, seed: 1, sharp: false,
};
const ACTIVATIONS = { "tanh-relu": "tanh, then ReLU", tanh: "tanh", relu: "ReLU", sigmoid: "sigmoid", linear: "none (linear)" };
const DECAYS = [0, 0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1];
const [MOST_ROWS, MOST_UNITS, MOST_LAYERS, MOST_SAMPLE] = [500, 16, 3, 4096];

/** Pixels of an outline's longest side, of one too short to be seen, of the room for its labels, for a sign, for a letter. */
const [LONGEST, SHORTEST, TOP_LABEL, BOTTOM_LABEL, SIDE_LABEL, SIGN, LETTER] = [88, 5, 20, 18, 52, 26, 7.4];

/** A number in a text, but not one of a name, of an index, of a row, of a layer, or in a power of ten. */
const COUNT = /(?<![\w.[#+-]|row |layer )\d+(?:,\d{3})*(?![\w.]\d)(?!\w)/g;
const SIZED = ".claim code, .line .shape, .jacobian dd, #shapes td, .place, .formula munder > mrow:last-child mn, .factor-sizes, .product-picture, .questions :is(dt, dd)";

/** Take the page's record to the setup at hand. Returns what holds it; null where the page has one network only. */
export function prepareSetup(record) {
  const text = document.getElementById("structures")?.textContent;
  if (text) window.handgradStructures = { text };
  if (!window.handgradStructures || !record.live) return null;
  const reopened = text ? null : window.handgradStructures.reopened;
  const setup = { chosen: { ...OPENING, ...reopened?.chosen }, record, reopened };
  if (reopened) {
    writeSizes(setup);
    drawNumbers(setup);
  }
  return setup;
}

/** The setup's own numbers: data and weights, drawn with its seeds. */
function drawData(setup) {
  const { chosen } = setup;
  const { coordinates } = DATA_SETS[chosen.data];
  const { points, t } = rowsOf(chosen.data, chosen.rows, chosen.noise, chosen.dataSeed);
  const order = shuffled(chosen.rows, generator(chosen.dataSeed + 1000));
  const tests = Math.round((chosen.rows * chosen.test) / 100);
  const part = (numbers) => {
    const own = Float64Array.from(numbers.flatMap((k) => Array.from(points.subarray(k * coordinates, (k + 1) * coordinates))));
    return { points: own, t: Float64Array.from(numbers, (k) => t[k]), x: inputsOf(own, coordinates, chosen.features) };
  };
  return { coordinates, test: part(order.slice(0, tests)), training: part(order.slice(tests)) };
}

/** Weights of variance 2 / fan-in (He and others, 2015), as handgrad's Linear has them by default, and biases of 0. */
function drawWeights({ chosen, record }) {
  const random = generator(chosen.seed);
  return Object.fromEntries(record.live.parameters.map((name) => {
    const { shape } = record.live.values.find((value) => value.operation === "load" && value.attribute === name);
    const length = shape.reduce((product, size) => product * Number(size), 1);
    return [name, Float64Array.from({ length }, () => (shape.length === 2 ? random.normal() * Math.sqrt(2 / shape[0]) : 0))];
  }));
}

const trainingRows = ({ rows, test }) => rows - Math.round((rows * test) / 100);
const batchRows = (chosen) => Math.min(chosen.batch || Infinity, trainingRows(chosen));

/** Which page it is: the structure, as the pages are named, and the sizes. */
function structureOf({ data, widths, activation, decay }) {
  const own = widths.length < 2 && activation === "tanh-relu" ? "tanh" : activation;
  return `${widths.length} ${widths.length ? own : "linear"} ${DATA_SETS[data].task}${decay ? " decay" : ""}`;
}
const sizesOf = (chosen) => ({
  rows: batchRows(chosen), inputs: chosen.features.length, outputs: DATA_SETS[chosen.data].task === "regression" ? 1 : 2,
  ...Object.fromEntries(chosen.widths.map((width, k) => [`hidden${k + 1}`, width])),
});
const pageOf = (chosen) => JSON.stringify([structureOf(chosen), sizesOf(chosen)]);

/** Return what makes of a recorded number that of these sizes; of one that is no product of recorded sizes, itself. */
function resizing(recorded, sizes) {
  return (number) => {
    let [rest, found] = [number, 1];
    for (const [name, prime] of Object.entries(recorded)) {
      while (rest > 1 && rest % prime === 0) [rest, found] = [rest / prime, found * sizes[name]];
    }
    return rest === 1 && number > 1 ? found : number;
  };
}

/** Write the page's sizes, in its record and in its text. */
function writeSizes({ chosen, record, reopened }) {
  const of = resizing(reopened.sizes, sizesOf(chosen));
  const each = (sizes) => sizes.map((size) => (Number.isNaN(Number(size)) ? size : of(Number(size))));
  const inText = (text) => text.replace(COUNT, (number) => of(Number(number.replaceAll(",", ""))).toLocaleString("en"));
  const { live } = record;
  for (const value of live.values) value.shape = each(value.shape).map(String);
  for (const value of live.values) if (value.operation === "constant" && value.attribute === reopened.decay) value.attribute = chosen.decay;
  live.learning_rate = reopened.rate;
  for (const entry of Object.values(record.ledger)) {
    Object.assign(entry, { shape: each(entry.shape), bytes: of(entry.bytes / 8) * 8, sizes: each(entry.sizes) });
    if (!entry.sample) continue;
    const width = entry.sizes.slice(1).reduce((product, size) => product * size, 1);
    const shape = entry.sizes.length ? [Math.min(entry.sizes[0], Math.floor(MOST_SAMPLE / width)), ...entry.sizes.slice(1)] : [];
    entry.sample = { shape, numbers: [] };
  }
  for (const jacobian of record.jacobians) {
    for (const key of ["outputSizes", "inputSizes"]) jacobian[key] = each(jacobian[key]);
    const shape = [...jacobian.outputSizes, ...jacobian.inputSizes];
    jacobian.sample = { shape, numbers: new Array(shape.reduce((product, size) => product * size, 1)).fill(0) };
    if (jacobian.example >= sizesOf(chosen).rows) jacobian.example = 0;
  }
  for (const block of record.drawing) block.layer = inText(block.layer);
  const parts = [document, ...[...document.querySelectorAll("template")].map((template) => template.content)];
  for (const node of parts.flatMap((part) => [...part.querySelectorAll(SIZED)])) {
    const walk = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) walk.currentNode.data = inText(walk.currentNode.data);
  }
  for (const node of document.querySelectorAll("[data-bytes]")) {
    const { bytes } = record.ledger[node.dataset.bytes];
    node.textContent = bytes < 1024 ? `${bytes} B` : `${Number((bytes / 1024).toPrecision(3))} kB`;
  }
  writeDecay(reopened.decay, chosen.decay);
  const recorded = document.querySelector("h1").textContent.replace(/^network | · .*$/g, "");
  for (const node of document.querySelectorAll(".product-picture")) redrawProduct(node);
  for (const node of document.querySelectorAll(".witness")) node.querySelector(".recorded").before(` (checked on ${reopened.sizes.rows} rows of ${recorded})`);
  const title = document.querySelector("h1");
  const count = live.parameters.reduce((sum, name) => sum + record.ledger[name].sizes.reduce((product, size) => product * size, 1), 0);
  title.textContent = inText(title.textContent).replace(/[\d,]+ parameters/, `${count} parameters`);
  document.title = `${title.textContent} · explained`;
}

/** Outlines of a product in the proportions of their sizes at hand, placed as `product_picture.py` places them. */
function redrawProduct(figure) {
  for (const svg of figure.querySelectorAll("svg")) {
    const [boxes, rows, columns, names, signs] = ["rect", ".rows", ".columns", ".name", ".sign"].map((each) => [...svg.querySelectorAll(each)]);
    const sizes = boxes.map((_, k) => [rows, columns].map((texts) => Number(texts[k].textContent.split(" = ").at(-1))));
    const scale = LONGEST / Math.max(...sizes.slice(0, 2).flat());
    const sides = sizes.map((own) => own.map((size) => Math.max(size * scale, SHORTEST)));
    const highest = Math.max(...sides.map(([high]) => high));
    const place = (node, own) => Object.entries(own).forEach(([name, value]) => node.setAttribute(name, value.toFixed(1)));
    let x = 0;
    sides.forEach(([height, width], k) => {
      const [left, top] = [x + SIDE_LABEL, TOP_LABEL + (highest - height) / 2];
      place(boxes[k], { x: left, y: top, width, height });
      place(rows[k], { x: left - 5, y: top + height / 2 + 4 });
      place(columns[k], { x: left, y: top - 6 });
      place(names[k], { x: left, y: top + height + 14 });
      x += SIDE_LABEL + Math.max(width, LETTER * Math.max(names[k].textContent.length, columns[k].textContent.length));
      if (!signs[k]) return;
      place(signs[k], { x: x + SIGN / 2, y: (TOP_LABEL + highest + BOTTOM_LABEL) / 2 });
      x += SIGN;
    });
    const whole = [x + 8, TOP_LABEL + highest + BOTTOM_LABEL].map(Math.round);
    svg.setAttribute("viewBox", `0 0 ${whole.join(" ")}`);
    ["width", "height"].forEach((name, k) => svg.setAttribute(name, whole[k]));
  }
  for (const text of figure.querySelectorAll("p")) {
    text.textContent = text.textContent.replace(/^Without the transpose (\d+) columns of .* do not meet \1 rows of .*$/,
      "Without the transpose the sizes fit here too, because $1 is both: the numbers would be others.");
  }
}

/** Write the rate of the weight decay into the update lines and their formulas. */
function writeDecay(recorded, decay) {
  for (const node of document.querySelectorAll("[data-phase='update'] code, [data-phase='update'] mn")) {
    node.textContent = node.textContent.replace(String(recorded), String(decay));
  }
}

/** Write the page of another structure, or of other sizes, in place of this one. */
async function reopen(setup, chosen) {
  const held = window.handgradStructures;
  held.pages ??= await unpacked(held.text);
  const { lines, pages, sizes, decay } = held.pages;
  const [script, style] = ["script[type=module]", "style"].map((part) => document.querySelector(part).textContent);
  const page = pages[structureOf(chosen)].map((k) => lines[k]).join("\n");
  const line = document.querySelector("[aria-current=step]");
  held.reopened = {
    chosen, sizes, decay, rate: Number(document.getElementById("rate").value) || 0.1, view: setup.view,
    target: setup.record.lines[Number(line.id.split("-")[1])].target, focus: document.activeElement?.id,
    weights: sameWeights(setup.chosen, chosen) ? Object.fromEntries(setup.record.live.parameters.map((name) => [name, setup.lab.program.arrays[name]])) : null,
    scroll: [scrollX, scrollY, document.getElementById("setup")?.scrollTop ?? 0], theme: document.documentElement.dataset.theme,
    step: setup.lab.program.scalars.step,
  };
  setup.lab.pause();
  document.open();
  document.write(page.replace("/*style*/", () => style).replace("/*script*/", () => script));
  document.close();
}

/** Whether a change leaves the weights as they are: another batch, another rate. */
function sameWeights(before, after) {
  const own = ({ widths, activation, features, data, seed, dataSeed, noise, rows, test }) => JSON.stringify([widths, activation, features, data, seed, dataSeed, noise, rows, test]);
  return own(before) === own(after);
}

/** The pages, from their compressed text. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

/** Join the setup to the lab: its numbers are the program's, and its batches come one after the other. */
export function joinSetup(setup, lab) {
  setup.lab = lab;
  lab.setup = setup;
  setup.nextBatch = () => {
    if (!setup.rows || batchRows(setup.chosen) === trainingRows(setup.chosen)) return;
    Object.assign(lab.program.arrays, takeBatch(setup));
  };
  setup.losses = () => {
    if (!setup.rows) return null;
    const { program } = lab;
    const of = ({ x, t }) => program.at({ x, t }, "loss").loss;
    const whole = batchRows(setup.chosen) === trainingRows(setup.chosen);
    return { training: whole ? program.loss : of(setup.rows.training), test: setup.rows.test.t.length ? of(setup.rows.test) : null, batch: whole ? null : program.loss };
  };
  setup.restart = () => {
    if (!setup.rows) return;
    startBatches(setup);
    takeBatch(setup); // the first, which the program starts with
  };
  if (setup.reopened) takeNumbers(setup);
  lab.program.sharp = setup.chosen.sharp;
}

/** Draw data and weights, from which the program starts. */
function drawNumbers(setup) {
  setup.rows = drawData(setup);
  startBatches(setup);
  setup.record.live.arrays = { ...drawWeights(setup), ...takeBatch(setup) };
}

/** Start the program from what was drawn; from the weights of the page before where they are to stay. */
function takeNumbers(setup) {
  const { lab: { program }, chosen, reopened } = setup;
  program.reset();
  program.space = spaceOfPoints(setup);
  if (reopened?.weights) {
    Object.assign(program.arrays, reopened.weights);
    program.scalars.step = reopened.step;
    program.run();
    reopened.weights = null;
  }
  const { training, test } = setup.rows;
  const tests = test.t.length ? `, ${test.t.length} test rows` : "";
  const small = batchRows(chosen) < training.t.length ? `, ${batchRows(chosen)} of them a batch` : "";
  for (const node of document.querySelectorAll("#health, nav a[href='#health']")) node.remove(); // measured on other rows
  const learned = program.scalars.step > 1 ? "" : "This network has learned nothing yet. ";
  document.querySelector(".introduction").textContent =
    `${learned}Below is one step of its training: step on, click any number to change it or to see what it is computed from, and train.`;
  const origin = document.querySelector(".title p");
  origin.replaceChildren(origin.querySelector(".product"), ` weights and rows drawn in the page: ${training.t.length} training rows of ${DATA_SETS[chosen.data].label}${small}${tests}`);
}

/** Where predictions are drawn: over the points, not over the inputs made of them. */
function spaceOfPoints(setup) {
  const { chosen, rows } = setup;
  const plain = chosen.features.join() === ["x", "y"].slice(0, rows.coordinates).join();
  const whole = batchRows(chosen) === rows.training.t.length;
  const changed = ({ arrays }) => ({ points: plain ? arrays.x : rows.training.points, t: arrays.t }); // as far as the program has them all
  return {
    coordinates: rows.coordinates, test: rows.test, rows: whole ? changed : () => rows.training,
    inputs: (points) => inputsOf(points, rows.coordinates, chosen.features), names: chosen.features.map((name) => FEATURES[name].label),
  };
}

function startBatches(setup) {
  setup.random = generator(setup.chosen.seed + 2000);
  setup.order = [];
}

/** The next rows of the shuffled training rows; each epoch has an order of its own. All of them stay in theirs. */
function takeBatch({ rows: { training }, chosen, random, order }) {
  const size = batchRows(chosen);
  if (size === training.t.length) return { x: training.x, t: training.t };
  if (order.length < size) order.splice(0, order.length, ...shuffled(training.t.length, random));
  const taken = order.splice(0, size);
  const width = chosen.features.length;
  return { x: Float64Array.from(taken.flatMap((k) => Array.from(training.x.subarray(k * width, (k + 1) * width)))), t: Float64Array.from(taken, (k) => training.t[k]) };
}

/** Take a changed setup: in this page where it has the same structure and sizes, else in its own. */
async function takeSetup(setup, part) {
  const chosen = { ...setup.chosen, ...part };
  const { coordinates } = DATA_SETS[chosen.data];
  chosen.features = chosen.features.filter((name) => coordinates === 2 || !FEATURES[name].both);
  if (!chosen.features.length) chosen.features = ["x"];
  if (part.data && coordinates === 2 && DATA_SETS[setup.chosen.data].coordinates === 1) chosen.features = ["x", "y"];
  setup.lab.pause();
  if (pageOf(chosen) !== pageOf(setup.chosen)) return reopen(setup, chosen);
  const rate = chosen.decay !== setup.chosen.decay;
  if (rate) {
    const { live } = setup.record;
    for (const value of live.values) if (value.operation === "constant" && value.attribute === setup.chosen.decay) value.attribute = chosen.decay;
    writeDecay(setup.chosen.decay, chosen.decay);
  }
  setup.chosen = chosen;
  if (!rate) {
    setup.lab.losses = [];
    drawNumbers(setup);
    takeNumbers(setup);
    setup.redrawn = !setup.reopened; // the page's checks are of other numbers
  }
  setup.lab.again();
  showForm(setup);
  return undefined;
}

/** The controls, as a form. */
export function setupForm(setup) {
  const form = element("form", { id: "setup", class: "setup", "aria-label": "Set up the network and its data" });
  form.addEventListener("submit", (event) => event.preventDefault());
  setup.form = form;
  showForm(setup);
  return form;
}

function showForm(setup) {
  const { form, chosen } = setup;
  const focus = document.activeElement?.id;
  const { coordinates } = DATA_SETS[chosen.data];
  const set = (part) => takeSetup(setup, part);
  const field = (label, id, control) => {
    control.id = id;
    return element("p", {}, element("label", { for: id }, label), control);
  };
  const choice = (options, value, taken) => {
    const select = element("select", {}, ...options.map((each) => (each instanceof Node ? each : element("option", { value: each[0] }, each[1]))));
    select.value = value;
    select.addEventListener("change", () => taken(select.value));
    return select;
  };
  const number = (value, { min, max, step }, taken) => {
    const input = element("input", { type: "number", value, min, max, step });
    input.addEventListener("change", () => {
      const given = Math.min(Math.max(Number(input.value), min), max);
      taken((input.value = step === 1 ? Math.round(given) : given));
    });
    return input;
  };
  const asNumber = (name) => (value) => set({ [name]: Number(value) });
  const button = (id, text, part) => {
    const node = element("button", { type: "button", class: "quiet", id }, text);
    node.addEventListener("click", () => set(part()));
    return node;
  };
  const sets = ["classification", "regression"].map((task) => element("optgroup", { label: task },
    ...Object.entries(DATA_SETS).filter(([, each]) => each.task === task).map(([value, { label }]) => element("option", { value }, label))));
  const features = element("fieldset", {}, element("legend", {}, "Inputs"), ...Object.entries(FEATURES).map(([name, { label, both }]) => {
    const input = element("input", { type: "checkbox", id: `feature-${name}` });
    input.checked = chosen.features.includes(name);
    input.disabled = (both && coordinates === 1) || (input.checked && chosen.features.length === 1);
    input.addEventListener("change", () => set({ features: Object.keys(FEATURES).filter((each) => (each === name ? input.checked : chosen.features.includes(each))) }));
    return element("label", {}, input, label);
  }));
  const units = element("p", { class: "widths" }, element("label", { for: "units-1" }, "units"), ...chosen.widths.map((width, k) => {
    const input = number(width, { min: 1, max: MOST_UNITS, step: 1 }, (value) => set({ widths: chosen.widths.with(k, Number(value)) }));
    input.id = `units-${k + 1}`;
    input.setAttribute("aria-label", `units of hidden layer ${k + 1}`);
    return input;
  }));
  const layers = element("fieldset", {}, element("legend", {}, "Hidden layers"),
    field("layers", "layers", choice([0, 1, 2, 3].map((k) => [k, k]), chosen.widths.length, (value) => set({ widths: Array.from({ length: Number(value) }, (_, k) => chosen.widths[k] ?? chosen.widths.at(-1) ?? 8) }))),
    ...(chosen.widths.length ? [units] : []),
    ...(chosen.widths.length ? [field("activation", "activation", choice(Object.entries(ACTIVATIONS).filter(([name]) => chosen.widths.length > 1 || name !== "tanh-relu"), structureOf(chosen).split(" ")[1], (activation) => set({ activation })))] : []),
    element("p", {}, button("new-weights", "New weights", () => ({ seed: setup.chosen.seed + 1 })), element("span", { class: "muted" }, `seed ${chosen.seed}`)));
  const data = element("fieldset", {}, element("legend", {}, "Data"),
    field("data set", "data-set", choice(sets, chosen.data, (value) => set({ data: value }))),
    field("noise", "noise", number(chosen.noise, { min: 0, max: 1, step: 0.05 }, asNumber("noise"))),
    field("rows", "rows", number(chosen.rows, { min: 8, max: MOST_ROWS, step: 1 }, asNumber("rows"))),
    field("for tests", "test-share", choice([0, 10, 25, 50, 75].map((share) => [share, share ? `${share} %` : "none"]), chosen.test, asNumber("test"))),
    element("p", {}, button("new-data", "New data", () => ({ dataSeed: setup.chosen.dataSeed + 1 })), element("span", { class: "muted" }, `seed ${chosen.dataSeed}`)));
  const training = element("fieldset", {}, element("legend", {}, "Training"),
    field("batch", "batch", choice([0, 1, 2, 4, 8, 16, 32].filter((size) => size < trainingRows(chosen)).map((size) => [size, size || "all rows"]), chosen.batch < trainingRows(chosen) ? chosen.batch : 0, asNumber("batch"))),
    field("L2 decay", "decay", choice(DECAYS.map((rate) => [rate, rate || "none"]), chosen.decay, asNumber("decay"))));
  form.replaceChildren(data, layers, features, training);
  form.dataset.chosen = JSON.stringify(chosen);
  if (focus) document.getElementById(focus)?.focus({ preventScroll: true });
}

/** After the page is there: what was chosen in the one before is chosen again. */
export function takeUp(setup) {
  const { reopened } = setup;
  if (!reopened) return;
  document.getElementById("setup")?.scrollTo(0, reopened.scroll[2]);
  scrollTo(reopened.scroll[0], reopened.scroll[1]);
  document.getElementById(reopened.focus)?.focus({ preventScroll: true });
}

/** The losses in words. */
export function lossText(lab, losses) {
  const step = `step ${lab.program.scalars.step - 1}`;
  if (!losses) return `${step}, loss ${digits(lab.program.loss)}`;
  const batch = losses.batch === null ? "" : `, batch ${digits(losses.batch)}`;
  return `${step}, loss ${digits(losses.training)}${batch}${losses.test === null ? "" : `, test ${digits(losses.test)}`}`;
}
