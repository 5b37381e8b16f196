/** Elements, numbers and colours, as the other modules need them. Blue is below zero, orange above: no red and green. */

const SVG = "http://www.w3.org/2000/svg";
const SCALES = {
  light: ["#0b3c8c", "#5b9bd5", "#f4f4f2", "#f0a04b", "#9a4200"],
  dark: ["#a8d0ff", "#3f7fc9", "#23272e", "#c9722b", "#ffd3a6"],
};
const DARK = matchMedia("(prefers-color-scheme: dark)"); // asked for every cell of a picture
const NOT_FINITE = { light: "#c800c8", dark: "#ff5cff" };
const CLASSES = {
  light: ["#9ecae9", "#f7c79a", "#a9dcc3", "#e3b6d5", "#ece29a", "#c4c4cc"],
  dark: ["#1f4e79", "#7a4514", "#1c5b45", "#6a3a5c", "#665c14", "#4a4a52"],
};

const INKS = {}; // to ask for one takes a layout

/** Make an element: attributes, then children; text is always text. */
export const element = (tag, ...content) => filled(document.createElement(tag), ...content);

/** The same, in a drawing. */
export const drawn = (tag, ...content) => filled(document.createElementNS(SVG, tag), ...content);

function filled(node, attributes = {}, ...children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A number with four digits. */
export function digits(value) {
  if (value === null || !Number.isFinite(value)) return "not finite";
  const size = Math.abs(value);
  if (value !== 0 && (size < 1e-3 || size >= 1e5)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/** A shape as Python writes it. */
export function shapeText(sizes) {
  return `(${sizes.join(", ")}${sizes.length === 1 ? "," : ""})`;
}

/** Lets arrow keys move among items of which only one is reached with Tab. */
export function roving(items, chosen) {
  const move = (event, from) => {
    const steps = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Home: -items.length, End: items.length };
    const step = steps[event.key];
    if (step === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const to = Math.min(Math.max(from + step, 0), items.length - 1);
    for (const item of items) item.setAttribute("tabindex", -1);
    items[to].setAttribute("tabindex", 0);
    items[to].focus();
    chosen?.(to);
  };
  items.forEach((item, index) => item.addEventListener("keydown", (event) => move(event, index)));
}

/** Which of the two themes is seen. */
export function theme() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ?? (DARK.matches ? "dark" : "light");
}

/** One of the page's own colours, for what is drawn on a canvas. */
export function ink(name) {
  const key = `${theme()} ${name}`;
  INKS[key] ??= asked(name);
  return INKS[key];
}

function asked(name) {
  const probe = document.body.appendChild(document.createElement("span"));
  probe.style.color = `var(--${name})`;
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

/** Red, green and blue of a number between -most and most; who colours many asks once which theme is seen. */
export function colourOf(value, most, seen = theme()) {
  if (value === null) return rgb(NOT_FINITE[seen]);
  const scale = COLOURS[seen];
  const place = most > 0 ? 2 + 2 * Math.max(-1, Math.min(1, value / most)) : 2;
  const below = Math.min(3, Math.floor(place));
  const [from, to] = [scale[below], scale[below + 1]];
  return from.map((channel, k) => Math.round(channel + (to[k] - channel) * (place - below)));
}

/** A gradient of CSS along the whole scale. */
export function scaleAsCss() {
  return `linear-gradient(to right, ${SCALES[theme()].join(", ")})`;
}

/** A colour for a class. */
export function colourOfClass(number) {
  return rgb(CLASSES[theme()].at(number % CLASSES[theme()].length));
}

const COLOURS = Object.fromEntries(Object.entries(SCALES).map(([name, scale]) => [name, scale.map(rgb)]));

function rgb(hex) {
  return [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
}
