/** Arrays as heat maps, with their numbers. */

import { colourOf, digits, element, scaleAsCss, shapeText, theme } from "./dom.js";

const TALLEST_JACOBIAN = 288; // pixels
const [CORNER, WIDEST] = [6, 84]; // rows and columns of the table of numbers, and the pixels of a column

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

/** The side of the images that an array's rows or columns are, by the letter of the input's pixels; 0 when they are none. */
function sideOf(sample, entry, pixels) {
  const side = Math.sqrt(pixels?.count ?? 0);
  const axis = entry?.axes?.indexOf(pixels?.letter) ?? -1;
  if (sample.shape.length !== 2 || side < 4 || !Number.isInteger(side) || axis < 0) return 0;
  return sample.shape[axis] === pixels.count ? side : 0;
}

/** Rows and columns of the whole array of which a sample is the beginning. */
function wholeOf(sample, entry) {
  const { rows, columns } = matrix(sample, entry);
  const sizes = entry?.sizes ?? sample.shape;
  if (sizes.length < 2) return { rows: columns === 1 && rows > 1 ? sizes[0] : rows, columns: columns === 1 ? 1 : sizes[0] ?? 1 };
  return { rows: sizes.slice(0, -1).reduce((product, size) => product * size, 1), columns: sizes.at(-1) };
}

/**
 * One size of cells for arrays side by side, so that a size that two of them share has the same length in both; of large
 * arrays whose cells would be less than a pixel, for the parts that are shown.
 */
export function commonCell(entries, room, height) {
  const known = entries.filter((entry) => entry?.sample?.shape.length);
  const fitting = (sizes) => Math.min(18, ...sizes.map(({ rows, columns }) => Math.min(room / columns, height / rows)));
  const cell = fitting(known.map((entry) => wholeOf(entry.sample, entry)));
  return cell >= 1 ? { cell, whole: true } : { cell: fitting(known.map((entry) => matrix(entry.sample, entry))), whole: false };
}

/** The figure of a Jacobian, each axis named, with how much of it is shown. */
export function jacobianFigure({ sample, output, input, outputAxes, inputAxes, outputSizes, inputSizes }, row = null) {
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
  const rowText = row === null ? "" : `, row ${row}`;
  const label = `∂${output}/∂${input}${rowText}: down ${output}, ${down}; across ${input}, ${across}`;
  const canvas = element("canvas", { role: "img", "aria-label": label });
  const range = most(sample);
  paint(canvas, shown, range);
  const cell = Math.min(18, 480 / shown.columns, TALLEST_JACOBIAN / shown.rows);
  Object.assign(canvas.style, { width: `${Math.max(cell * shown.columns, 6)}px`, height: `${Math.max(cell * shown.rows, 6)}px` });
  const axes = element("div", { class: "axes", "aria-hidden": "true" },
    element("span", { class: "across" }, `${input}: ${across} →`), element("span", { class: "down" }, `${output}: ${down} ↓`));
  axes.append(element("div", { class: "frame" }, canvas));
  const zero = range === 0 ? `: every entry is 0${row === null ? "" : " in this row"}` : "";
  return element("figure", { class: "heat" }, element("figcaption", {}, `∂${output}/∂${input}${rowText}${zero}`), axes, scale(range));
}

/** A figure of one value: caption, heat map, scale, the value under the pointer. Its `redraw` shows other numbers. */
export function figure(name, entry, { sample = entry?.sample, limit, pixels, size, choose } = {}) {
  if (!sample) return element("p", { class: "muted" }, `${name} is not recorded`);
  const box = element("figure", { class: "heat" }, caption(name, entry, sample));
  if (!sample.shape.length) {
    const text = box.appendChild(element("p", { class: "scalar" }, digits(sample.numbers[0])));
    box.redraw = () => { text.textContent = digits(entry.sample.numbers[0]); };
    return box;
  }
  const side = sideOf(sample, entry, pixels);
  let [plain, range] = [matrix(sample, entry), limit ?? strongest(entry, sample)];
  let inTiles = side > 0;
  const readout = element("p", { class: "readout", "aria-live": "polite" }, summaryText(entry, sample));
  const canvas = element("canvas", { role: "img", tabindex: 0, "aria-label": `${name}: ${summaryText(entry, sample)}` });
  const frame = element("div", { class: "frame" }, canvas);
  const draw = () => {
    const shown = inTiles ? tiles(sample, side) : plain;
    paint(canvas, shown, range);
    return shown;
  };
  const place = () => {
    const shown = draw();
    if (size && !inTiles) inProportion(canvas, frame, shown, wholeOf(sample, entry), size);
    else fit(canvas, shown);
    if (inTiles) Object.assign(frame.style, { width: canvas.style.width, height: "" });
  };
  if (side) {
    const button = element("button", { type: "button", class: "quiet", "aria-pressed": "true" }, `as ${side} × ${side} images`);
    button.addEventListener("click", () => {
      inTiles = !inTiles;
      button.setAttribute("aria-pressed", inTiles);
      place();
    });
    box.append(button);
  }
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
  place();
  box.redraw = () => {
    sample = entry.sample;
    [plain, range] = [matrix(sample, entry), limit ?? strongest(entry, sample)];
    draw();
    if (frame.querySelector(".cursor").hidden) readout.textContent = summaryText(entry, sample);
    if (!entry.rounding) below.lastChild.textContent = scaleText(range);
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
  return element("div", { class: "scale", "aria-hidden": "true" }, bar, element("span", {}, scaleText(range)));
}

/** The number that the strongest colour is of; of what is 0 but for rounding no picture is made. */
function strongest(entry, sample) {
  return entry?.rounding ? Infinity : most(sample);
}

/** An array in true proportion, its cells as large as those of its neighbours, within the outline of all of it. */
function inProportion(canvas, frame, { rows, columns }, whole, { cell, whole: outlined }) {
  const least = (size) => `${Math.max(size * cell, 4)}px`;
  Object.assign(canvas.style, { width: least(columns), height: least(rows) });
  const all = outlined ? whole : { rows, columns };
  Object.assign(frame.style, { width: least(all.columns), height: least(all.rows) });
  frame.classList.toggle("partly", all.rows > rows || all.columns > columns);
}

const scaleText = (range) => `± ${digits(range)}`;

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
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -columns], End: [0, columns] }[event.key];
    if (!steps || event.altKey || event.ctrlKey || event.metaKey) return;
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

/** Outline some entries of a figure that shows all of its array, those that are neighbours together. */
export function light(slot, shape, places) {
  const [frame, canvas] = [slot.querySelector(".frame"), slot.querySelector("canvas")];
  for (const old of slot.querySelectorAll(".lit")) old.remove();
  if (!canvas || canvas.width * canvas.height !== shape.reduce((product, size) => product * size, 1)) return;
  const [width, height] = [parseFloat(canvas.style.width) / canvas.width, parseFloat(canvas.style.height) / canvas.height];
  for (const { row, column, rows, columns } of rectangles(places, canvas.width)) {
    const lit = frame.appendChild(element("span", { class: "lit" }));
    Object.assign(lit.style, { left: `${column * width}px`, top: `${row * height}px`, width: `${columns * width}px`, height: `${rows * height}px` });
  }
}

/** Cells as few rectangles: runs along the rows, and equal runs below one another as one. */
function rectangles(places, width) {
  const found = [];
  for (const place of [...new Set(places)].sort((a, b) => a - b)) {
    const [row, column] = [Math.floor(place / width), place % width];
    const last = found.at(-1);
    if (last?.row === row && last.column + last.columns === column) last.columns += 1;
    else found.push({ row, column, rows: 1, columns: 1 });
  }
  const merged = [];
  for (const run of found) {
    const above = merged.find((each) => each.column === run.column && each.columns === run.columns && each.row + each.rows === run.row);
    if (above) above.rows += 1;
    else merged.push(run);
  }
  return merged;
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

/** The first numbers, as numbers: as many columns as there is room for, of the whole array's; a cell is chosen as in the picture. Its `redraw` shows other numbers. */
export function numbersOf(name, entry, room, choose) {
  const { sample } = entry;
  const [shown, whole] = [matrix(sample, entry), wholeOf(sample, entry)];
  const across = Math.min(shown.columns, Math.max(2, Math.min(CORNER, Math.floor((room - 60) / WIDEST))));
  const down = Math.min(shown.rows, CORNER);
  const heads = Array.from({ length: across }, (_, c) => element("th", { scope: "col" }, String(c)));
  const head = element("thead", {}, element("tr", {}, element("th"), ...heads));
  const body = element("tbody");
  const cells = [];
  for (let r = 0; r < down; r++) {
    const row = body.appendChild(element("tr", {}, element("th", { scope: "row" }, indicesOf(sample, r, 0).slice(0, -1).join(", ") || String(r))));
    for (let c = 0; c < across; c++) {
      const cell = row.appendChild(element("td"));
      cells.push(cell);
      if (choose) cell.addEventListener("click", () => choose(indicesOf(sample, r, c)));
    }
    if (whole.columns > across) row.append(element("td", { class: "muted" }, "…"));
  }
  if (choose) reached(cells, across);
  const table = element("table", { class: "numbers" }, element("caption", {}, element("code", {}, name)), head, body);
  const left = [[whole.rows - down, "row"], [whole.columns - across, "column"]].filter(([size]) => size > 0);
  const text = left.map(([size, word]) => `${size} more ${word}${size === 1 ? "" : "s"}`).join(", ");
  const box = element("div", { class: "corner" }, table, ...(text ? [element("p", { class: "muted" }, `and ${text}`)] : []));
  box.redraw = () => {
    const [{ at }, range, seen] = [matrix(entry.sample, entry), strongest(entry, entry.sample), theme()];
    cells.forEach((cell, k) => {
      const value = at(Math.floor(k / across), k % across);
      const number = digits(value);
      if (cell.textContent !== number) cell.textContent = number;
      cell.style.borderBottomColor = `rgb(${colourOf(value, range, seen)})`;
    });
  };
  box.redraw();
  return box;
}

/** Cells of a table as one stop of the Tab key, moved within by the arrow keys, chosen with Enter. */
function reached(cells, across) {
  cells.forEach((cell, k) => {
    Object.entries({ tabindex: k ? -1 : 0, class: "choosable" }).forEach(([name, value]) => cell.setAttribute(name, value));
    cell.addEventListener("keydown", (event) => {
      if (event.key === "Enter") cell.click();
      const step = { ArrowUp: -across, ArrowDown: across, ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      event.stopPropagation();
      const to = cells[k + step];
      if (!to) return;
      cell.setAttribute("tabindex", -1);
      to.setAttribute("tabindex", 0);
      to.focus();
    });
  });
}
