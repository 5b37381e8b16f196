/** The network as its units, each drawn over the inputs, joined by its weights: all pictures at once. */

import { colourOf, digits, drawn, element, roving } from "./dom.js";
import { paint } from "./heatmap.js";
import { pictureOf } from "./predictions.js";

const [LEAST, LARGEST, GAP, TOP, BELOW] = [18, 34, 5, 20, 66]; // pixels: of a unit, between, above and below them

/** Draw the units into a place; `choose` is called with the name and the number of the one that is clicked. */
export function drawUnits(program, place, choose) {
  const layers = layersOf(program);
  const most = Math.max(...layers.map(({ units }) => units));
  const room = matchMedia("(max-width: 1280px)").matches ? Infinity : place.clientHeight - TOP - BELOW;
  const size = Math.max(LEAST, Math.min(LARGEST, Math.floor(room / most) - GAP));
  const height = TOP + most * (size + GAP);
  const across = (layer) => (layers.length > 1 ? layer / (layers.length - 1) : 0.5);
  const down = (layer, unit) => TOP + (most - layers[layer].units) * (size + GAP) * 0.5 + unit * (size + GAP);
  const built = JSON.stringify([layers, size]);
  if (place.dataset.built !== built) build();
  const pictures = pictureOf(program, layers.map(({ name }) => name));
  const canvases = place.querySelectorAll("canvas");
  let number = 0;
  layers.forEach(({ units }, layer) => {
    for (let unit = 0; unit < units; unit++, number++) {
      const own = pictures[layer].of(unit);
      const { rows, columns } = pictures[layer];
      paint(canvases[number], { rows, columns, at: (r, c) => own[r * columns + c] }, Math.max(...own.map(Math.abs)));
    }
  });
  const edges = place.querySelectorAll("path");
  number = 0;
  layers.slice(1).forEach(({ weights }) => {
    const { data } = program.value(weights);
    const largest = Math.max(...data.map(Math.abs), 1e-12);
    for (const weight of data) {
      const edge = edges[number++];
      edge.style.stroke = `rgb(${colourOf(Math.sign(weight) * 0.75, 1)})`;
      edge.style.strokeWidth = 0.4 + (4.6 * Math.abs(weight)) / largest;
      edge.querySelector("title").textContent = `${weights}: ${digits(weight)}`;
    }
  });

  function build() {
    place.dataset.built = built;
    const box = element("div", { class: "units" });
    box.style.height = `${height}px`;
    const svg = drawn("svg", { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
    const buttons = [];
    layers.forEach(({ name, units }, layer) => {
      const left = `calc(${across(layer)} * (100% - ${size}px))`;
      const label = box.appendChild(element("code", {}, name));
      Object.assign(label.style, { left, width: `${size}px` });
      for (let unit = 0; unit < units; unit++) {
        if (layer) {
          for (let from = 0; from < layers[layer - 1].units; from++) edgeTo(layer, from, unit);
        }
        const text = layer || !program.space ? `${name}[:, ${unit}]` : program.space.names[unit];
        const button = element("button", { type: "button", tabindex: buttons.length ? -1 : 0, "aria-label": text, title: text }, element("canvas"));
        Object.assign(button.style, { left, top: `${down(layer, unit)}px`, width: `${size}px`, height: `${size}px` });
        button.addEventListener("click", () => choose(name, unit));
        buttons.push(button);
      }
    });
    // the edges in the order of the weights: row by row of W
    const ordered = [...svg.children].sort((a, b) => a.dataset.place - b.dataset.place);
    svg.replaceChildren(...ordered);
    box.prepend(svg);
    box.append(...buttons);
    place.replaceChildren(box, element("p", { class: "muted" }, "each unit over the inputs: blue below zero, orange above; a line is as wide as its weight is large. Click a unit to see its line."));
    roving(buttons);

    function edgeTo(layer, from, to) {
      const y = (own, unit) => down(own, unit) + size / 2;
      const [x0, x1] = [layer - 1, layer].map((own) => 100 * across(own) + 6 * (0.5 - across(own)));
      const middle = (x0 + x1) / 2;
      const path = drawn("path", { d: `M${x0},${y(layer - 1, from)} C${middle},${y(layer - 1, from)} ${middle},${y(layer, to)} ${x1},${y(layer, to)}` }, drawn("title"));
      path.dataset.place = layer * 1e6 + from * layers[layer].units + to;
      svg.append(path);
    }
  }
}

/** The layers, from the inputs: the value whose units are drawn, and the weights that lead to it. */
function layersOf(program) {
  const { given } = program;
  const weights = given.parameters.filter((name) => program.value(name).shape.length === 2);
  const made = weights.map((name, k) => {
    const activated = `a${k + 1}`;
    return { name: activated in given.names ? activated : `z${k + 1}`, units: program.value(name).shape[1], weights: name };
  });
  return [{ name: "x", units: program.value("x").shape[1] }, ...made];
}
