/** Elements, numbers and names, as the other modules need them. */

const SVG = "http://www.w3.org/2000/svg";

/** Make an element: attributes, then children; text is always text. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same, in a drawing. */
export function drawn(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(name, value);
  }
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
