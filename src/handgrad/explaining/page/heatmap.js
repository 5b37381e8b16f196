/** Arrays as heat maps, with their numbers. */

import { colourOf, digits, element, scaleAsCss, shapeText, theme } from "./dom.js";

const CORNER = 6; // rows and columns of the table of numbers

/** A sample as a matrix: the last axis across, all others down; rows of the batch run down, of one number each too. */
export function matrix(sample, entry) {
  const down = sample.shape.length === 1 && entry?.shape?.[0] === "n";
  const columns = sample.shape.length && !down ? sample.shape.at(-1) : 1;
  const rows = sample.numbers.length / Math.max(columns, 1);
  return { rows, columns, at: (r, c) => sample.numbers[r * columns + c] };
}

/** The largest number of a sample, whatever its sign. */
export function most(sample) {
  return sample.numbers.reduce((found, value) => Math.max(found, Math.abs(value ?? 0)), 0);
}

/** Paint a matrix, one pixel a cell. */
export function paint(canvas, { rows, columns, at }, limit) {
  const sides = [Math.max(columns, 1), Math.max(rows, 1)];
  if (`${[canvas.width, canvas.height]}` !== `${sides}`) [canvas.width, canvas.height] = sides;
  const [context, seen] = [canvas.getContext("2d"), theme()];
  const image = context.createImageData(canvas.width, canvas.height);
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      const value = at(r, c);
      if (value === undefined) continue;
      const [place, colour] = [4 * (r * columns + c), colourOf(value, limit, seen)];
      for (let k = 0; k < 3; k++) image.data[place + k] = colour[k];
      image.data[place + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
}

/** A Jacobian as blocks with gaps: outputs down, inputs across, a block for each index of all axes but the last. */
export function blocks(sample, outputs) {
  const sizes = [sample.shape.slice(0, outputs), sample.shape.slice(outputs)];
  const [[down, rows], [across, columns]] = sizes.map((own) => {
    const last = own.at(-1) ?? 1;
    return [last, own.reduce((product, size) => product * size, 1)];
  });
  const gapped = (count, size) => count + Math.max(0, Math.ceil(count / size) - 1);
  const at = (r, c) => {
    if ((r + 1) % (down + 1) === 0 || (c + 1) % (across + 1) === 0) return undefined;
    const [row, column] = [r - Math.floor(r / (down + 1)), c - Math.floor(c / (across + 1))];
    return sample.numbers[row * columns + column];
  };
  return { rows: gapped(rows, down), columns: gapped(columns, across), at };
}

/** A sample as rows of small images, when the places of one axis are a square. */
function tiles(sample, side) {
  const [rows, columns] = [sample.shape[0], sample.shape[1]];
  const across = columns === side * side;
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
  return sample.shape.includes(pixels) ? side : 0;
}

/** The figure of a Jacobian, each axis named, with how much of it is shown. */
export function jacobianFigure({ sample, output, input, outputAxes, inputAxes, outputSizes, inputSizes }) {
  const named = (axes, sizes, start) => axes.map((axis, k) => {
    const shown = sample.shape[start + k];
    return `${axis} (${shown < sizes[k] ? `first ${shown} of ` : ""}${sizes[k]})`;
  });
  const side = (axes, sizes, start) => {
    const [last, ...others] = named(axes, sizes, start).reverse();
    return last === undefined ? "one number" : others.length ? `${last} within blocks of ${others.reverse().join(", ")}` : last;
  };
  const [down, across] = [side(outputAxes, outputSizes, 0), side(inputAxes, inputSizes, outputAxes.length)];
  const shown = blocks(sample, outputAxes.length);
  const label = `∂${output}/∂${input}: down ${output}, ${down}; across ${input}, ${across}`;
  const canvas = element("canvas", { role: "img", "aria-label": label });
  const range = most(sample);
  paint(canvas, shown, range);
  const box = element("figure", { class: "heat" }, element("figcaption", {}, label), element("div", { class: "frame" }, canvas), scale(range));
  fit(canvas, shown);
  return box;
}

/** A figure of one value: caption, heat map, scale, the value under the pointer, numbers. Its `redraw` shows other numbers. */
export function figure(name, entry, { sample = entry?.sample, limit, pixels = 0, numbers = false, choose } = {}) {
  if (!sample) return element("p", { class: "muted" }, `${name} is not recorded`);
  const box = element("figure", { class: "heat" }, caption(name, entry, sample));
  if (!sample.shape.length) {
    const text = box.appendChild(element("p", { class: "scalar" }, digits(sample.numbers[0])));
    box.redraw = () => { text.textContent = digits(entry.sample.numbers[0]); };
    return box;
  }
  const rangeOf = () => (entry?.rounding ? Infinity : limit ?? most(sample)); // of what is 0 but for rounding no picture is made
  const side = sideOf(sample, pixels);
  let [plain, range] = [matrix(sample, entry), rangeOf()];
  let inTiles = side > 0;
  const readout = element("p", { class: "readout", "aria-live": "polite" }, summaryText(entry, sample));
  const canvas = element("canvas", { role: "img", tabindex: 0, "aria-label": `${name}: ${summaryText(entry, sample)}` });
  const draw = () => {
    const shown = inTiles ? tiles(sample, side) : plain;
    paint(canvas, shown, range);
    return shown;
  };
  if (side) {
    const button = element("button", { type: "button", class: "quiet", "aria-pressed": "true" }, `as ${side} × ${side} images`);
    button.addEventListener("click", () => {
      inTiles = !inTiles;
      button.setAttribute("aria-pressed", inTiles);
      fit(canvas, draw());
    });
    box.append(button);
  }
  const frame = element("div", { class: "frame" }, canvas);
  const below = entry?.rounding ? element("p", {}, "0 but for rounding") : scale(range);
  box.append(frame, below, readout);
  const cell = follow(canvas, frame, () => !inTiles, plain, (r, c) => {
    readout.textContent = `${name}[${indicesOf(sample, r, c).join(", ")}] = ${digits(plain.at(r, c))}`;
  });
  if (choose) {
    canvas.classList.add("chosen-from");
    const chosen = () => !inTiles && choose(indicesOf(sample, ...cell()));
    canvas.addEventListener("click", chosen);
    canvas.addEventListener("keydown", (event) => event.key === "Enter" && chosen());
  }
  const table = numbers ? box.appendChild(corner(name, sample, plain)) : null;
  table?.redraw(plain, range);
  fit(canvas, draw());
  box.redraw = () => {
    sample = entry.sample;
    [plain, range] = [matrix(sample, entry), rangeOf()];
    draw();
    if (frame.querySelector(".cursor").hidden) readout.textContent = summaryText(entry, sample);
    if (!entry.rounding) scaleTexts(range).forEach((text, k) => { below.children[2 * k].textContent = text; });
    table?.redraw(plain, range);
  };
  return box;
}

function caption(name, entry, sample) {
  const letters = entry?.axes?.length ? ` (${entry.axes.join(", ")})` : "";
  const sizes = entry?.sizes ?? sample.shape;
  const part = sample.shape.some((size, axis) => size < sizes[axis]) ? `, the first ${sample.shape.join(" × ")}` : "";
  return element("figcaption", {}, element("code", {}, `${name}${letters} ${shapeText(sizes)}`), part);
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
  const [low, high] = scaleTexts(range).map((text) => element("span", {}, text));
  return element("div", { class: "scale", "aria-hidden": "true" }, low, bar, high);
}

const scaleTexts = (range) => [-range, range].map(digits);

/** Sizes in whole pixels where there is room, so that cells are alike. */
function fit(canvas, { rows, columns }) {
  const room = Math.max(180, Math.min(canvas.closest(".slot")?.clientWidth || 320, 520) - 2);
  const cell = Math.min(18, room / columns);
  const width = cell >= 1 ? Math.floor(cell) * columns : room;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${Math.min(Math.max(rows * Math.max(width / columns, 3), 14), 288)}px`;
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
  if (sample.shape.length === 1) return [Math.max(row, column)];
  const indices = [column];
  for (let axis = sample.shape.length - 2, rest = row; axis >= 0; axis--) {
    indices.unshift(rest % sample.shape[axis]);
    rest = Math.floor(rest / sample.shape[axis]);
  }
  return indices;
}

/** The first numbers, as numbers. */
function corner(name, sample, { rows, columns }) {
  const heads = Array.from({ length: Math.min(columns, CORNER) }, (_, c) => element("th", { scope: "col" }, String(c)));
  const head = element("thead", {}, element("tr", {}, element("th"), ...heads));
  const body = element("tbody");
  const cells = [];
  for (let r = 0; r < Math.min(rows, CORNER); r++) {
    const row = body.appendChild(element("tr", {}, element("th", { scope: "row" }, indicesOf(sample, r, 0).slice(0, -1).join(", ") || String(r))));
    for (let c = 0; c < Math.min(columns, CORNER); c++) {
      cells.push({ r, c, cell: row.appendChild(element("td")) });
    }
    if (columns > CORNER) row.append(element("td", { class: "muted" }, "…"));
  }
  const table = element("table", { class: "numbers" }, head, body);
  const wrap = element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `First numbers of ${name}` }, table);
  const left = [[rows, "rows"], [columns, "columns"]].filter(([size]) => size > CORNER).map(([size, word]) => `${size - CORNER} more ${word}`);
  if (left.length) wrap.append(element("p", { class: "muted" }, `and ${left.join(", ")}`));
  wrap.redraw = ({ at }, range) => {
    const seen = theme();
    for (const { r, c, cell } of cells) {
      const text = digits(at(r, c));
      if (cell.textContent === text) continue;
      cell.textContent = text;
      cell.style.borderBottomColor = `rgb(${colourOf(at(r, c), range, seen)})`;
    }
  };
  return wrap;
}
