/** The network as a drawing: blocks from top to bottom, values down on the left, gradients up on the right. */

import { digits, drawn, roving, shapeText } from "./dom.js";

const [WIDTH, LEFT, RIGHT] = [380, 70, 310];
const [DOWN, UP] = [165, 215]; // where the two arrows of an edge run
const EDGE = 38;
const LANE = 11;
const [ROW, BAR] = [17, 96]; // of a block's parameters, and the longest bar of a gradient's size
const PILL = 54; // the width of a target's, at the right of the loss

/** Draw the network. Returns what moves it to a line, and what draws its numbers again. */
export function drawNetwork(place, record, choose) {
  const { column: blocks, beside } = parted(record);
  const made = new Map(record.lines.map((line, number) => [line.target, number]).reverse());
  const root = drawn("svg", { class: "network", role: "group", "aria-label": "The network, from its input to its loss" });
  root.append(arrowheads());
  const parts = { root, record, made, choose, edges: [], boxes: [], items: [], norms: [] };
  let top = 4;
  const spots = new Map();
  blocks.forEach((block, index) => {
    const height = 30 + ROW * (block.parameters.length + Number(gradientsOf(record, block).length > 0));
    spots.set(block.name, { index, top, bottom: top + height, middle: top + 15 });
    top += height + (index < blocks.length - 1 ? EDGE : 4);
  });
  const lanes = takeLanes(blocks, spots);
  for (const block of blocks) drawBlock(parts, block, spots.get(block.name));
  for (const block of blocks) {
    const gives = spots.get(block.name);
    const users = blocks.filter((other) => other.inputs.includes(block.name));
    if (users.length) drawEdgeLabels(parts, block.name, gives.bottom);
    for (const user of users) drawEdge(parts, block, user, gives, spots.get(user.name), lanes.get(block.name));
  }
  root.setAttribute("viewBox", `0 0 ${WIDTH} ${top}`);
  place.append(root);
  for (const block of blocks) drawBeside(parts, block, spots.get(block.name), beside);
  roving(parts.items);
  parts.items[0]?.setAttribute("tabindex", 0);
  let current = 0;
  return { move: (number) => show(parts, (current = number), place), renew: () => showNorms(parts, current) };
}

/** The blocks from the input to the loss, and those that enter at the loss only: targets, and what is made of them alone. */
function parted({ drawing: blocks, lines }) {
  const forward = new Set(blocks.filter((block) => block.part === "forward").flatMap((block) => [block.name, ...block.inputs]));
  const beside = new Map();
  const users = (name) => blocks.filter((block) => block.inputs.includes(name));
  for (const block of blocks) {
    // a target's classes read z too, for the number of its columns alone: no gradient goes there
    const alone = block.part === "input" || (block.inputs.some((name) => beside.has(name)) && !lines.some(({ undoes }) => undoes === block.name));
    if (forward.size && !forward.has(block.name) && alone && users(block.name).length) beside.set(block.name, block);
  }
  return { column: blocks.filter((block) => !beside.has(block.name)), beside };
}

/** Pills at the right of a block for the targets that enter there, each with an arrow into it. */
function drawBeside(parts, block, { top }, beside) {
  block.inputs.filter((name) => beside.has(name)).forEach((name, row) => {
    const y = top + 15 + 26 * row;
    const text = drawn("text", { x: WIDTH - PILL / 2 - 2, y: y + 4, class: "label" }, short(name, 6));
    const box = drawn("rect", { x: WIDTH - PILL - 2, y: y - 11, width: PILL, height: 22, rx: 11 });
    const source = beside.get(name);
    const targets = source.inputs.filter((each) => beside.has(each));
    const of = targets.length ? `, ${source.label} of ${targets.join(" and ")}` : "";
    const group = drawn("g", { class: "block input" }, drawn("title", {}, `${named(parts.record, name)}${of}: enters at the loss`), box, text);
    parts.root.append(group);
    if (source.lines.length) act(parts, group, named(parts.record, name), Math.min(...source.lines));
    parts.boxes.push({ group, lines: new Set(source.lines) });
    const line = drawn("path", { d: `M${WIDTH - PILL - 2},${y} H${RIGHT + 1}`, class: "edge forward", "marker-end": "url(#arrow-forward)" });
    parts.root.append(line);
    parts.edges.push({ nodes: [line], since: parts.made.get(name) ?? -1 });
  });
}

/** A lane at the side for each value that is read further down than the next block. */
function takeLanes(blocks, spots) {
  const busy = []; // until which block each lane is taken
  const lanes = new Map();
  for (const block of blocks) {
    const from = spots.get(block.name).index;
    const last = Math.max(-1, ...blocks.filter((b) => b.inputs.includes(block.name)).map((b) => spots.get(b.name).index));
    if (last <= from + 1) continue;
    let lane = busy.findIndex((until) => until <= from);
    if (lane < 0) lane = busy.length;
    busy[lane] = last;
    lanes.set(block.name, lane);
  }
  return lanes;
}

function arrowheads() {
  const head = (id) => drawn("marker", { id, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
    drawn("path", { d: "M0,0.5 L8,4 L0,7.5 z" }));
  return drawn("defs", {}, head("arrow-forward"), head("arrow-backward"));
}

function drawBlock(parts, block, { top, bottom }) {
  const group = drawn("g", { class: `block ${block.part}` });
  const title = drawn("title", {}, `${block.label} · ${block.layer}`);
  const box = drawn("rect", { x: LEFT, y: top, width: RIGHT - LEFT, height: bottom - top, rx: block.part === "input" ? 15 : 5 });
  const label = drawn("text", { x: (LEFT + RIGHT) / 2, y: top + 20, class: "label" }, short(block.part === "input" ? block.name : block.label, 28));
  group.append(title, box, label);
  parts.root.append(group);
  if (block.lines.length) act(parts, group, `${block.label}, ${block.layer}`, Math.min(...block.lines));
  parts.boxes.push({ group, lines: new Set(block.lines) });
  block.parameters.forEach((name, row) => {
    const y = top + 37 + ROW * row;
    parts.root.append(drawn("text", { x: LEFT + 10, y, class: "kept" }, short(named(parts.record, name), 16)));
    const gradient = parts.record.ledger[name]?.gradient;
    const label = () => drawn("text", { x: RIGHT - 10, y, class: "gradient", "text-anchor": "end" }, short(named(parts.record, gradient), 18));
    if (gradient) addName(parts, gradient, [label()], parts.made.get(gradient));
  });
  const names = gradientsOf(parts.record, block);
  if (names.length) drawNorm(parts, names, bottom - 9);
}

/** The gradients of a block's parameters. */
function gradientsOf({ ledger }, block) {
  return block.parameters.map((name) => ledger[name]?.gradient).filter((name) => ledger[name]?.summary);
}

/** A bar for the size of a block's gradients, against the largest of all blocks. */
function drawNorm(parts, names, y) {
  const text = drawn("text", { x: LEFT + 10, y }, "gradient");
  const bar = drawn("rect", { x: RIGHT - 10 - BAR, y: y - 7, height: 6, width: 0 });
  const group = drawn("g", { class: "norm" }, drawn("title", {}, `the norm of ${names.join(" and ")}`), text, bar);
  parts.root.append(group);
  parts.norms.push({ names, text, bar, group, since: Math.max(...names.map((name) => parts.made.get(name))) });
}

function showNorms({ norms, record }, number) {
  const sizes = norms.map(({ names }) => Math.hypot(...names.map((name) => record.fresh(name).summary.norm)));
  const most = Math.max(...sizes.filter(Number.isFinite), 0);
  norms.forEach(({ text, bar, group, since }, k) => {
    const ready = since <= number;
    group.classList.toggle("ready", ready);
    text.textContent = ready ? `gradient ${digits(sizes[k])}` : "gradient";
    bar.setAttribute("width", most > 0 && Number.isFinite(sizes[k]) ? (sizes[k] / most) * BAR : 0);
  });
}

function named(record, name) {
  const entry = record.ledger[name];
  return entry ? `${name} ${shapeText(entry.shape)}` : name;
}

/** A name with its title, that leads to its line; an input's is there from the start. */
function addName(parts, name, nodes, number, kind) {
  const text = named(parts.record, name);
  const group = drawn("g", {}, drawn("title", {}, text), ...nodes);
  parts.root.append(group);
  if (number !== undefined) act(parts, group, text, number);
  parts.edges.push({ nodes: [group], since: number ?? (kind === "value" ? -1 : Infinity) });
}

function act(parts, group, label, number) {
  for (const [name, value] of Object.entries({ role: "button", tabindex: -1, "aria-label": label })) group.setAttribute(name, value);
  group.classList.add("hit");
  group.addEventListener("click", () => parts.choose(number));
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      parts.choose(number);
    }
  });
  parts.items.push(group);
}

/** Beside an edge: the value's name and shape on the left; its gradient's on the right. */
function drawEdgeLabels(parts, name, top) {
  const gradient = parts.record.ledger[name]?.gradient;
  addLabel(parts, name, DOWN - 9, top, "end", "value");
  if (gradient) addLabel(parts, gradient, UP + 9, top, "start", "gradient");
}

function addLabel(parts, name, x, top, anchor, kind) {
  const entry = parts.record.ledger[name];
  const text = (y, content, style) => drawn("text", { x, y: top + y, class: style, "text-anchor": anchor }, content);
  const target = drawn("rect", { x: anchor === "end" ? x - 86 : x - 2, y: top + 3, width: 88, height: EDGE - 6, class: "target" });
  const nodes = [target, text(15, short(name, 13), kind)];
  if (entry) nodes.push(text(29, short(shapeText(entry.shape), 14), `${kind} sizes`));
  addName(parts, name, nodes, parts.made.get(name), kind);
}

function drawEdge(parts, block, user, from, to, lane) {
  const gradient = parts.record.lines.findIndex((line) => line.undoes === user.name && parts.record.ledger[line.target]?.gradient_of === block.name);
  const line = (kind, d) => parts.root.insertBefore(drawn("path", { d, class: `edge ${kind}`, "marker-end": `url(#arrow-${kind})` }), parts.root.children[1]);
  const paths = to.index === from.index + 1
    ? { down: `M${DOWN},${from.bottom} V${to.top - 1}`, up: `M${UP},${to.top} V${from.bottom + 1}` }
    : lanePaths(from, to, lane);
  parts.edges.push({ nodes: [line("forward", paths.down)], since: parts.made.get(block.name) ?? -1 });
  if (gradient >= 0) parts.edges.push({ nodes: [line("backward", paths.up)], since: gradient });
}

function lanePaths(from, to, lane) {
  const [left, right, out] = [LEFT - 12 - LANE * lane, RIGHT + 12 + LANE * lane, from.bottom - 7];
  return {
    down: `M${LEFT},${out} H${left} V${to.middle} H${LEFT - 1}`,
    up: `M${RIGHT},${to.middle} H${right} V${out} H${RIGHT + 1}`,
  };
}

function short(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** Mark the block of a line; what has not run yet is faint, what has shows its numbers. */
function show(parts, number, place) {
  for (const { group, lines } of parts.boxes) {
    const here = lines.has(number);
    group.classList.toggle("current", here);
    if (here && place.scrollHeight > place.clientHeight) {
      const box = group.getBoundingClientRect();
      const outer = place.getBoundingClientRect();
      if (box.top < outer.top || box.bottom > outer.bottom) place.scrollTop += box.top - outer.top - outer.height / 3;
    }
  }
  for (const edge of parts.edges) {
    const ready = edge.since <= number;
    for (const node of edge.nodes) node.classList.toggle("ready", ready);
  }
  showNorms(parts, number);
}
