/** Mistakes that fit a backward line: each is another result of one of the line's operations, or a shape that does not fit. */

import { inNames } from "./arithmetic.js";
import { shapeText } from "./dom.js";
import { broadcast, product } from "./live.js";

/**
 * The mistakes that fit a line: each with its catalogue's code, the number of the operation that has another result, and
 * what that is; or the error that it ends in.
 */
export function mistakesOf({ program, record }, target) {
  const number = program.given.names[target];
  const { operation, inputs } = program.given.values[number];
  const { shape } = program.results[number];
  const line = record.lines.find((each) => each.target === target && each.phase === "backward");
  const leaves = program.leaves(number, 0).map((part) => part.name);
  const found = [];
  if (operation === "product" && shape.length === 2) found.push(...ofProduct(program, target, shape, inputs));
  for (const each of program.ofLine(target)) found.push(...ofOperation({ program, record }, each, line));
  if (line.activation) found.push(...ofActivation({ program, record }, line, number));
  for (const name of new Set(leaves)) {
    if (program.given.parameters.includes(name)) found.push(updatedFirst(program, number, name, leaves.filter((other) => other !== name)));
  }
  found.push({ code: "wrong-sign", name: "the sign turned", at: number, change: scaled(-1) });
  return found;
}

const scaled = (by) => ({ shape, data }) => ({ shape, data: data.map((value) => value * by) });

/** What is forgotten of an operation through which the gradient comes: a term, a factor, or that a sum is no mean. */
function ofOperation({ program, record }, at, { activation, target }) {
  const { operation, inputs } = program.given.values[at];
  const [left, right] = inputs;
  const own = (part) => inNames(program, part);
  const [carried, other] = [left, right].map((part) => part !== undefined && program.carries(part));
  const fits = (part) => program.results[part].data.length === program.results[at].data.length;
  const only = (part) => ({ shape }, operands) => broadcast(shape, operands[part]);
  const root = at === program.given.names[target];
  if (operation === "sum" && carried && root) {
    const added = program.results[left].data.length / program.results[at].data.length;
    return [{ code: "batch-mean-vs-sum", name: "the mean in place of the sum", at, change: scaled(1 / added) }];
  }
  if (activation) return [];
  const without = (code, part, sign = "") => ({ code, at, name: `${sign}${own(inputs[part])} left out`, change: only(1 - part) });
  if (operation === "add" && carried && other) return [without("missing-term", 0), without("missing-term", 1)];
  if (operation === "subtract" && other && carried) return [without("missing-term", 1, "− ")];
  if (operation === "subtract" && !other && !carried && [left, right].every((part) => program.nameOf(part))) {
    return [{ code: "wrong-sign", name: `${own(right)} − ${own(left)} in place of ${own(left)} − ${own(right)}`, at, change: scaled(-1) }];
  }
  if (operation === "divide" && carried && !other) {
    const rows = program.given.values[right].operation === "size" || program.results[right].data[0] === program.n;
    return [without(rows ? "batch-mean-vs-sum" : "constant-factor", 1, "/ ")];
  }
  if (operation !== "multiply" || carried === other) return [];
  const [factor, upstream] = carried ? [1, 0] : [0, 1];
  return [
    ...(fits(inputs[upstream]) ? [without(program.given.values[inputs[factor]].operation === "constant" ? "constant-factor" : "missing-local-derivative", factor)] : []),
    ...(record.ledger[program.origin(inputs[upstream], 0).name]?.kind === "gradient" && fits(inputs[factor]) ? [without("ignores-upstream", upstream)] : []),
  ];
}

/** An operation's result where some values are others, and the values that are pinned are what they were. */
function recomputed(own, number, pinned, others) {
  const changed = new Map(pinned.map((name) => [own.given.names[name], own.value(name)]).concat(others).map(([k, result]) => [k, () => result]));
  return Object.assign(own.copy(), { changed }).run(number).results[number];
}

/** The derivative of an activation is forgotten, or taken at what comes out of it. */
function ofActivation({ program, record }, { undoes: output, target, reads }, at) {
  const [input, upstream] = [record.ledger[target].gradient_of, `d${output}`];
  const place = program.given.names[input];
  if (![output, input, upstream].every((name) => name in program.given.names) || !reads.includes(upstream)) return [];
  return [
    { code: "missing-local-derivative", name: `the local derivative left out: ${upstream} unchanged`, at, change: (right, operands, own) => own.value(upstream) },
    { code: "wrong-evaluation-point", name: `the derivative taken at ${output}, not at ${input}`, at,
      change: (right, operands, own) => recomputed(own, at, [upstream], [[place, own.value(output)]]) },
  ];
}

/** The weights are updated before the error is passed on through them. */
function updatedFirst(program, at, name, others) {
  const change = (right, operands, own) => {
    const after = Object.assign(own.copy(), { changed: new Map() }).run();
    return recomputed(own, at, others, [[program.given.names[name], after.results[program.given.assigned[name]]]]);
  };
  return { code: "stale-or-mutated-state", name: `${name} updated before this line`, at, change };
}

function ofProduct(program, target, shape, inputs) {
  const found = [];
  const { values, names } = program.given;
  const at = names[target];
  const [left, right] = inputs.map((input) => program.results[input].shape);
  const plain = inputs.map((input) => (values[input].operation === "transpose" ? values[input].inputs[0] : input));
  plain.forEach((input, k) => {
    if (input === inputs[k]) return;
    const chosen = inputs.map((own, each) => (each === k ? input : own));
    const [a, b] = chosen.map((each) => program.results[each].shape);
    const [code, name] = ["transposed", "the transpose left out"];
    const text = `${shapeText(a)} @ ${shapeText(b)}`;
    if (a[1] !== b[0]) found.push({ code, name, error: `${text}: ${a[1]} columns do not meet ${b[0]} rows` });
    else if (`${[a[0], b[1]]}` !== `${shape}`) found.push({ code, name, error: `${text} is ${shapeText([a[0], b[1]])}, and ${target} has ${shapeText(shape)}` });
    else found.push({ code, name, at, change: (result, operands, own) => ({ shape, data: product(shape, own.results[chosen[0]], own.results[chosen[1]]) }) });
  });
  const star = { code: "elementwise-instead-of-matmul", name: "* in place of @" };
  if (`${left}` !== `${right}`) found.push({ ...star, error: `${shapeText(left)} * ${shapeText(right)}: these shapes are not multiplied entry by entry` });
  else found.push({ ...star, at, change: (result, [a, b]) => ({ shape, data: a.data.map((value, k) => value * b.data[k]) }) });
  if (left[1] === program.n && values[inputs[0]].shape[1] === "n") {
    found.push({ code: "batch-mean-vs-sum", name: "the mean over the rows in place of the sum", at, change: scaled(1 / left[1]) });
    found.push({ code: "averaged-batch", name: "the rows averaged before the product", at, change: (result, [a, b]) => ({ shape, data: averagedFirst(shape, a, b) }) });
  }
  return found;
}

/** The averages over the rows, multiplied: every row of x meets every row of the gradient. */
function averagedFirst([rows, columns], a, b) {
  const count = a.shape[1];
  const sumOf = (place) => Array.from({ length: count }, (_, n) => place(n)).reduce((sum, value) => sum + value, 0);
  const across = Array.from({ length: columns }, (_, c) => sumOf((n) => b.data[n * columns + c]));
  return Float64Array.from({ length: rows * columns }, (_, k) => (sumOf((n) => a.data[Math.floor(k / columns) * count + n]) * across[k % columns]) / count);
}
