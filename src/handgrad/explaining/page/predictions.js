/** What a network of one or two inputs predicts over them, with the batch's rows: it moves with every number of the page. */

import { colourOf, colourOfClass, digits, element, ink, theme } from "./dom.js";
import { paint } from "./heatmap.js";

const [SIZE, SIDE, POINTS, UNIT_SIDE] = [320, 40, 160, 20]; // the canvas, cells along a side, points of a curve, cells of a unit
const COARSE = 20; // cells along a side while numbers move

/** Where predictions are drawn, and the rows there: over the inputs themselves, unless they are made of points. */
const spaceOf = (program) => program.space ?? {
  coordinates: program.value("x").shape[1], rows: ({ arrays: { x, t } }) => ({ points: x, t }), inputs: (points) => points,
};

/** Whether the predictions are over a plane. */
export const overPlane = (program) => program.given.fixed && program.value("x").shape.length === 2 && spaceOf(program).coordinates === 2;

/** The points of all rows that are drawn, those for testing too. */
function everyPoint(program) {
  const { rows, test } = spaceOf(program);
  return [...rows(program).points, ...(test?.points ?? [])];
}

/** Draw the curves of one input, or the plane of two, and say below what its colours mean; without `key` in coarse cells. */
export function drawPredictions(program, canvas, key) {
  if (canvas.width !== SIZE) canvas.width = canvas.height = SIZE;
  const context = canvas.getContext("2d");
  context.clearRect(0, 0, SIZE, SIZE);
  context.lineWidth = 1.5;
  const text = spaceOf(program).coordinates === 1 ? drawCurves(program, context) : drawPlane(program, context, key ? SIDE : COARSE);
  if (!key) return;
  const tests = spaceOf(program).test?.t.length ? "; test rows are hollow" : "";
  key.textContent = `${text}${tests}`;
  canvas.setAttribute("aria-label", `What the network predicts over its inputs, with the batch's rows: ${text}`);
}

/** The smallest and the largest number, with a margin. */
function rangeOf(numbers, margin) {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  return [low - margin * (high - low || 1), high + margin * (high - low || 1)];
}

const placeIn = (value, [low, high]) => ((value - low) / (high - low)) * SIZE;
const between = ([low, high], share) => low + share * (high - low);

function drawCurves(program, context) {
  const across = rangeOf(everyPoint(program), 0.1);
  const { rows: own, test } = spaceOf(program);
  const { points, t } = own(program);
  const grid = Float64Array.from({ length: POINTS }, (_, k) => between(across, k / (POINTS - 1)));
  const [found, rows, tests] = [predictions(program, grid, POINTS), targets(program, t), targets(program, test?.t ?? [])];
  const shown = program.given.task === "regression" || found[0].length > 2 ? found[0].map((_, k) => k) : [1]; // of two classes one is enough
  const up = rangeOf([...found, ...rows, ...tests].flatMap((own) => shown.map((k) => own[k])), 0.1);
  shown.forEach((output, number) => {
    context.strokeStyle = ink("accent");
    context.setLineDash([[], [7, 4], [2, 3]][number % 3]);
    context.beginPath();
    found.forEach((own, k) => context.lineTo(placeIn(grid[k], across), SIZE - placeIn(own[output], up)));
    context.stroke();
    context.fillStyle = ink("text");
    rows.forEach((own, row) => context.fillRect(placeIn(points[row], across) - 2.5, SIZE - placeIn(own[output], up) - 2.5, 5, 5));
    context.strokeStyle = ink("text");
    context.setLineDash([]);
    tests.forEach((own, row) => context.strokeRect(placeIn(test.points[row], across) - 2.5, SIZE - placeIn(own[output], up) - 2.5, 5, 5));
  });
  const what = program.given.task === "regression" ? "the prediction" : "the probability";
  return `${what}, from ${digits(up[0])} to ${digits(up[1])}, over x from ${digits(across[0])} to ${digits(across[1])}; squares are rows`;
}

/** The cells of the plane of two inputs, a margin around the rows included, from the upper left. */
function plane(program, side = SIDE) {
  const points = everyPoint(program);
  const [across, up] = [0, 1].map((axis) => rangeOf(points.filter((_, k) => k % 2 === axis), 0.15));
  const grid = Float64Array.from({ length: 2 * side * side }, (_, k) => {
    const cell = k >> 1;
    return k % 2 ? between(up, 1 - (Math.floor(cell / side) + 0.5) / side) : between(across, ((cell % side) + 0.5) / side);
  });
  return { across, up, grid };
}

/** One unit of a value over the plane of two inputs: what it has learned to tell apart. */
export function unitPicture(program, name, unit) {
  const { data } = elsewhere(program, plane(program).grid, SIDE * SIDE, name).value(name);
  const width = data.length / SIDE ** 2;
  const own = Array.from({ length: SIDE * SIDE }, (_, k) => data[k * width + unit]);
  const canvas = element("canvas", { role: "img", "aria-label": `${name}[:, ${unit}] over the two inputs` });
  paint(canvas, { rows: SIDE, columns: SIDE, at: (r, c) => own[r * SIDE + c] }, Math.max(...own.map(Math.abs)));
  const text = `${name}[:, ${unit}] over the two inputs, as the picture of the predictions: from ${digits(Math.min(...own))} to ${digits(Math.max(...own))}`;
  return element("figure", { class: "unit" }, canvas, element("figcaption", { class: "muted" }, text));
}

/** The units of several values over the inputs: for each value its picture's size, and the numbers of a unit. */
export function pictureOf(program, names) {
  const flat = spaceOf(program).coordinates === 1;
  const range = flat && rangeOf(everyPoint(program), 0.1);
  const [rows, columns] = flat ? [1, UNIT_SIDE] : [UNIT_SIDE, UNIT_SIDE];
  const grid = flat ? Float64Array.from({ length: columns }, (_, k) => between(range, (k + 0.5) / columns)) : plane(program, UNIT_SIDE).grid;
  const found = elsewhere(program, grid, rows * columns, program.given.output);
  return names.map((name) => {
    const { shape: [, width], data } = found.value(name);
    return { rows, columns, of: (unit) => Array.from({ length: rows * columns }, (_, k) => data[k * width + unit]) };
  });
}

/** The class or the sign alone, where the setup wants no shades. */
function sharpened({ sharp, given }, own) {
  if (!sharp) return own;
  if (given.task === "regression") return own.map((value) => Math.sign(value) * 0.6);
  return own.map((share) => Number(share === Math.max(...own)));
}

function drawPlane(program, context, side) {
  const { rows: own, test } = spaceOf(program);
  const { points: x, t } = own(program);
  const { across, up, grid } = plane(program, side);
  const [found, rows] = [predictions(program, grid, side * side).map((each) => sharpened(program, each)), targets(program, t)];
  const colour = shading(program, [...found, ...rows]);
  const cells = element("canvas", { width: side, height: side });
  const image = context.createImageData(side, side);
  found.forEach((own, k) => image.data.set([...colour(own), 255], 4 * k));
  cells.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(cells, 0, 0, SIZE, SIZE);
  const values = program.given.task === "regression";
  const marked = values || found[0].length > 2 ? () => ink("text") : (own) => `rgb(${colourOf(2 * own[1] - 1, 1)})`;
  context.strokeStyle = ink("surface");
  rows.forEach((own, row) => {
    context.fillStyle = marked(own);
    mark(context, placeIn(x[2 * row], across), SIZE - placeIn(x[2 * row + 1], up), values ? 0 : own.indexOf(1));
  });
  context.lineWidth = 2.5;
  targets(program, test?.t ?? []).forEach((own, row) => {
    context.strokeStyle = marked(own);
    mark(context, placeIn(test.points[2 * row], across), SIZE - placeIn(test.points[2 * row + 1], up), values ? 0 : own.indexOf(1), false);
  });
  context.lineWidth = 1.5;
  if (program.sharp) return values ? "below zero blue, above orange; circles are rows" : "the likelier class: 0 blue, circles; 1 orange, squares";
  if (values) return "prediction below zero blue, above orange; circles are rows";
  if (found[0].length > 2) return "shaded by the classes' probabilities; class 0 circles, 1 squares, 2 triangles, and so on";
  return "shaded by probability: class 0 blue, circles; class 1 orange, squares";
}

/** A row: a shape for each class, so that colour is not all that tells them apart. */
function mark(context, x, y, label, filled = true) {
  context.beginPath();
  if (label % 3 === 0) context.arc(x, y, 4.8, 0, 7);
  else if (label % 3 === 1) context.rect(x - 4.5, y - 4.5, 9, 9);
  else for (const [dx, dy] of [[0, -6], [6, 5], [-6, 5], [0, -6]]) context.lineTo(x + dx, y + dy);
  if (filled) context.fill();
  context.stroke();
}

/** Values, and shares of a yes, go from blue to orange; of more classes each has its colour, and they mix. */
function shading(program, every) {
  const seen = theme();
  if (program.given.task === "regression") {
    const most = Math.max(...every.map(([value]) => Math.abs(value)).filter(Number.isFinite));
    return ([value]) => colourOf(Number.isFinite(value) ? value : null, most * 1.2, seen);
  }
  if (every[0].length === 2) return ([, yes]) => colourOf(Number.isFinite(yes) ? 2 * yes - 1 : null, 1.4, seen);
  return (shares) => [0, 1, 2].map((channel) => shares.reduce((sum, share, k) => sum + share * colourOfClass(k)[channel], 0));
}

/** The forward at other points, as far as a value. */
function elsewhere(program, points, rows, name) {
  const t = new Float64Array((program.arrays.t.length / program.n) * rows);
  const x = spaceOf(program).inputs(points);
  const extra = program.arrays.w ? { w: new Float64Array(rows).fill(1) } : {};
  return program.at({ x, t, ...extra }, name);
}

/** For each row of other inputs: the probability of each class, or the outputs. */
function predictions(program, points, rows) {
  const { given } = program;
  const { data } = elsewhere(program, points, rows, given.output).value(given.output);
  const width = data.length / rows;
  return Array.from({ length: rows }, (_, row) => {
    const own = Array.from(data.subarray(row * width, (row + 1) * width));
    if (given.task === "regression") return own;
    const scores = given.task === "labels" ? [0, own[0]] : own; // the log odds of the first label
    const most = Math.max(...scores);
    const parts = scores.map((z) => Math.exp(z - most));
    const whole = parts.reduce((sum, part) => sum + part, 0);
    return parts.map((part) => part / whole);
  });
}

/** Each row's target in the form of a prediction: its values, or 1 for its class and 0 for the others. */
function targets(program, t) {
  const { given, n, arrays } = program;
  const [width, outputs] = [arrays.t.length / n, program.value(given.output).shape.at(-1)];
  return Array.from({ length: t.length / width }, (_, row) => {
    const own = Array.from(t.slice(row * width, (row + 1) * width));
    if (given.task === "regression") return own;
    const label = given.task === "labels" || width === 1 ? Math.round(own[0]) : own.indexOf(Math.max(...own));
    return Array.from({ length: given.task === "labels" ? 2 : outputs }, (_, k) => Number(k === label));
  });
}
