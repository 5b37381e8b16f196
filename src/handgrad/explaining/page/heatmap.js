/** Arrays as heat maps, with their numbers. */

import { colourOf, digits, element, scaleAsCss, shapeText } from "./dom.js";

const CORNER = 6; // rows and columns of the table of numbers

/** A sample as a matrix: the last axis across, all others down. */
export function matrix(sample) {
  const columns = sample.shape.length ? sample.shape.at(-1) : 1;
  const rows = sample.numbers.length / Math.max(columns, 1);
  return { rows, columns, at: (r, c) => sample.numbers[r * columns + c] };
}

/** The largest number of a sample, whatever its sign. */
export function most(sample) {
  return sample.numbers.reduce((found, value) => Math.max(found, Math.abs(value ?? 0)), 0);
}

/** Paint a matrix, one pixel a cell. */
export function paint(canvas, { rows, columns, at }, limit) {
  canvas.width = Math.max(columns, 1);
  canvas.height = Math.max(rows, 1);
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const value = at(r, c);
      image.data.set(value === undefined ? [0, 0, 0, 0] : [...colourOf(value, limit), 255], 4 * (r * columns + c));
    }
  }
  context.putImageData(image, 0, 0);
}

/** A sample as rows of small images, when the places of one axis are a square. */
function tiles(sample, side) {
  const [rows, columns] = [sample.shape[0], sample.shape[1]];
  const across = columns === side * side && sample.steps[1] === 1;
  const count = across ? rows : columns;
  const wide = Math.min(count, 16);
  const cell = side + 1;
  const at = (r, c) => {
    const [pixelRow, pixelColumn] = [r % cell, c % cell];
    const tile = Math.floor(r / cell) * wide + Math.floor(c / cell);
    if (pixelRow === side || pixelColumn === side || tile >= count) return undefined;
    const pixel = pixelRow * side + pixelColumn;
    return sample.numbers[across ? tile * columns + pixel : pixel * columns + tile];
  };
  return { rows: Math.ceil(count / wide) * cell - 1, columns: wide * cell - 1, at };
}

/** The side of the images that a sample's rows or columns are; 0 when they are none. */
function sideOf(sample, pixels) {
  const side = Math.sqrt(pixels);
  if (sample.shape.length !== 2 || side < 4 || !Number.isInteger(side)) return 0;
  return sample.shape.some((size, axis) => size === pixels && sample.steps[axis] === 1) ? side : 0;
}

/** A figure of one value: caption, heat map, scale, the value under the pointer, numbers. */
export function figure(name, entry, { sample = entry?.sample, limit, pixels = 0, numbers = false, choose } = {}) {
  if (!sample) return element("p", { class: "muted" }, `${name} is not recorded`);
  const box = element("figure", { class: "heat" }, caption(name, entry, sample));
  if (!sample.shape.length) {
    box.append(element("p", { class: "scalar" }, digits(sample.numbers[0])));
    return box;
  }
  const range = limit ?? most(sample);
  const side = sideOf(sample, pixels);
  const plain = matrix(sample);
  const readout = element("p", { class: "readout", "aria-live": "polite" }, summaryText(entry, sample));
  const canvas = element("canvas", { role: "img", tabindex: 0, "aria-label": `${name}: ${summaryText(entry, sample)}` });
  let shown = side ? tiles(sample, side) : plain;
  const draw = () => {
    paint(canvas, shown, range);
    fit(canvas, shown);
  };
  if (side) {
    const button = element("button", { type: "button", class: "quiet", "aria-pressed": "true" }, `as ${side} × ${side} images`);
    button.addEventListener("click", () => {
      shown = shown === plain ? tiles(sample, side) : plain;
      button.setAttribute("aria-pressed", shown !== plain);
      draw();
    });
    box.append(button);
  }
  const frame = element("div", { class: "frame" }, canvas);
  box.append(frame, scale(range), readout);
  const cell = follow(canvas, frame, () => shown === plain, plain, (r, c) => {
    readout.textContent = `${name}[${indicesOf(sample, r, c).join(", ")}] = ${digits(plain.at(r, c))}`;
  });
  if (choose) {
    canvas.classList.add("chosen-from");
    const chosen = () => shown === plain && choose(indicesOf(sample, ...cell()));
    canvas.addEventListener("click", chosen);
    canvas.addEventListener("keydown", (event) => event.key === "Enter" && chosen());
  }
  if (numbers) box.append(corner(name, sample, plain, range));
  draw();
  return box;
}

function caption(name, entry, sample) {
  const letters = entry?.axes?.length ? ` (${entry.axes.join(", ")})` : "";
  const sizes = entry?.sizes ?? sample.shape;
  const every = sample.steps.some((step) => step > 1) ? `, every ${sample.steps.join(" by ")}` : "";
  return element("figcaption", {}, element("code", {}, `${name}${letters} ${shapeText(sizes)}`), every);
}

function summaryText(entry, sample) {
  const found = entry?.summary;
  if (!found) return `${sample.numbers.length} numbers`;
  const bad = found.not_finite ? `, ${found.not_finite} not finite` : "";
  return `from ${digits(found.least)} to ${digits(found.most)}, mean ${digits(found.mean)}, ${Math.round(100 * found.zeros)} % zeros${bad}`;
}

function scale(range) {
  const bar = element("span", { class: "bar" });
  bar.style.background = scaleAsCss();
  const [low, high] = [-range, range].map((value) => element("span", {}, digits(value)));
  return element("div", { class: "scale", "aria-hidden": "true" }, low, bar, high);
}

/** Sizes in whole pixels where there is room, so that cells are alike. */
function fit(canvas, { rows, columns }) {
  const room = Math.max(180, Math.min(canvas.closest(".slot")?.clientWidth || 320, 520) - 2);
  const cell = Math.min(18, room / columns);
  const width = cell >= 1 ? Math.floor(cell) * columns : room;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${Math.min(Math.max(rows * Math.max(width / columns, 3), 14), 360)}px`;
}

/** Show the value under the pointer, or under a cursor moved with arrow keys. */
function follow(canvas, frame, possible, { rows, columns }, say) {
  let [row, column] = [0, 0];
  const cursor = frame.appendChild(element("span", { class: "cursor", hidden: "" }));
  const show = () => {
    cursor.hidden = !possible();
    if (cursor.hidden) return;
    const [width, height] = [canvas.clientWidth / columns, canvas.clientHeight / rows];
    Object.assign(cursor.style, {
      left: `${column * width}px`, top: `${row * height}px`, width: `${width}px`, height: `${height}px`,
    });
    say(row, column);
  };
  canvas.addEventListener("pointermove", (event) => {
    const within = (at, size, count) => Math.min(count - 1, Math.max(0, Math.floor((at / size) * count)));
    row = within(event.offsetY, canvas.clientHeight, rows);
    column = within(event.offsetX, canvas.clientWidth, columns);
    show();
  });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!steps) return;
    event.preventDefault();
    event.stopPropagation();
    row = Math.min(rows - 1, Math.max(0, row + steps[0]));
    column = Math.min(columns - 1, Math.max(0, column + steps[1]));
    show();
  });
  canvas.addEventListener("focus", show);
  for (const left of ["blur", "pointerleave"]) canvas.addEventListener(left, () => (cursor.hidden = true));
  return () => [row, column];
}

/** Light up some entries of a figure that shows all of its array. */
export function light(slot, shape, places) {
  const [frame, canvas] = [slot.querySelector(".frame"), slot.querySelector("canvas")];
  for (const old of slot.querySelectorAll(".lit")) old.remove();
  if (!canvas || canvas.width * canvas.height !== shape.reduce((product, size) => product * size, 1)) return;
  const [width, height] = [canvas.clientWidth / canvas.width, canvas.clientHeight / canvas.height];
  for (const place of places) {
    const lit = frame.appendChild(element("span", { class: "lit" }));
    const [row, column] = [Math.floor(place / canvas.width), place % canvas.width];
    Object.assign(lit.style, { left: `${column * width}px`, top: `${row * height}px`, width: `${width}px`, height: `${height}px` });
  }
}

/** The indices in the whole array of a cell of the sample. */
function indicesOf(sample, row, column) {
  const indices = [column];
  for (let axis = sample.shape.length - 2, rest = row; axis >= 0; axis--) {
    indices.unshift(rest % sample.shape[axis]);
    rest = Math.floor(rest / sample.shape[axis]);
  }
  return indices.map((index, axis) => index * sample.steps[axis]);
}

/** The first numbers, as numbers. */
function corner(name, sample, { rows, columns, at }, range) {
  const body = element("tbody");
  for (let r = 0; r < Math.min(rows, CORNER); r++) {
    const row = body.appendChild(element("tr"));
    for (let c = 0; c < Math.min(columns, CORNER); c++) {
      const cell = row.appendChild(element("td", {}, digits(at(r, c))));
      cell.style.borderBottomColor = `rgb(${colourOf(at(r, c), range)})`;
    }
    if (columns > CORNER) row.append(element("td", { class: "muted" }, "…"));
  }
  const table = element("table", { class: "numbers" }, body);
  const wrap = element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `First numbers of ${name}` }, table);
  if (rows > CORNER) wrap.append(element("p", { class: "muted" }, `and ${rows - CORNER} more rows`));
  return wrap;
}
