/** One entry of a line, written out: its arithmetic by its parts' names, the same with their numbers, and each sum's terms. */

import { digits, element } from "./dom.js";
import { indexOf } from "./live.js";

const INFIX = {
  add: ["+", 1], subtract: ["-", 1], multiply: ["·", 2], divide: ["/", 2], power: ["**", 4], less: ["<", 0], less_equal: ["≤", 0],
  greater: [">", 0], greater_equal: ["≥", 0], equal: ["=", 0], not_equal: ["≠", 0], logical_and: ["and", 0], logical_or: ["or", 0],
};
const ASSOCIATIVE = ["add", "multiply"];
const CALLED = { maximum: "max", minimum: "min", absolute: "abs" };
const ATOM = 5;
const MOST_TERMS = 12; // of a sum that are written out at first

/** A name with the indices of an entry. */
export function at(name, shape, place) {
  return shape.length ? `${name}[${indexOf(shape, place).join(", ")}]` : name;
}

/** An operation of a line by the names that it reads, without indices: for what a mistake is called. */
export const inNames = (program, number) => new Writing(program, () => "").write(number, 0);

/** Writes entries of a line; `leaf` writes one of a name. What is summed on the way is in `sums`. */
class Writing {
  constructor(program, leaf) {
    Object.assign(this, { program, leaf, sums: [] });
  }

  /** The entry of an operation, in brackets where it binds less than a level. */
  write(number, place, level = 0, root = false) {
    const [text, own] = this.part(number, place, root);
    return own < level ? `(${text})` : text;
  }

  part(number, place, root) {
    const { program } = this;
    const part = root ? { number, place, shape: program.results[number].shape } : program.origin(number, place);
    const { operation, inputs, attribute } = program.given.values[part.number];
    if (part.name) return this.named(part);
    if (operation === "constant") return [digits(attribute), attribute < 0 ? 0 : ATOM];
    if (operation === "size") return this.named({ ...part, name: "n" });
    if (["product", "sum"].includes(operation)) {
      if (!root) this.sums.push(part);
      return [this.leaf({ ...part, sum: true }) || `sum(${inputs.map((input) => this.write(input, 0)).join(", ")})`, ATOM];
    }
    const [factors] = program.terms(part.number, part.place);
    if (operation === "max" || operation === "min") return [this.leaf({ ...part, extreme: operation }) || `${operation}(${this.write(inputs[0], 0)})`, ATOM];
    if (operation === "take") return this.part(factors[0].number, factors[0].place);
    if (operation === "is_class") return [`${this.write(factors[0].number, factors[0].place, 1)} is ${place % part.shape.at(-1)}`, 0];
    if (!factors) return [digits(part.value ?? program.results[part.number].data[part.place]), ATOM];
    const written = (k, to) => this.write(factors[k].number, factors[k].place, to);
    if (factors.length === 1 && ["copy", "convert", "broadcast"].includes(operation)) return this.part(factors[0].number, factors[0].place);
    if (operation === "multiply" && inputs[0] === inputs[1]) return [`${written(0, ATOM)} ** 2`, 4];
    if (operation === "negative") return [`-${written(0, 3)}`, 3];
    if (operation in INFIX) {
      const [sign, own] = INFIX[operation];
      return [`${leading(written(0, own))} ${sign} ${written(1, ASSOCIATIVE.includes(operation) ? own : own + 1)}`, own];
    }
    return [`${CALLED[operation] ?? operation}(${factors.map((_, k) => written(k, 0)).join(", ")})`, ATOM];
  }

  named(part) {
    const text = this.leaf(part) || part.name;
    return [text, text.startsWith("-") ? 0 : ATOM];
  }
}

/** The largest or the smallest of a row, or along other axes: max(z[0, :]). */
function extremeOf(program, { number, place, extreme }) {
  const { inputs, attribute } = program.given.values[number];
  const { name, shape } = program.origin(inputs[0], 0);
  const index = indexOf(shape.map((size, axis) => (attribute.includes(axis) ? 1 : size)), place);
  return name && `${extreme}(${name}[${index.map((each, axis) => (attribute.includes(axis) ? ":" : each)).join(", ")}])`;
}

/** An entry by the entries it is made of, the same with their numbers, and the sums in it. */
function written(program, number, place, root) {
  const several = (count) => (count > 1 ? `Σ${"₁₂₃₄₅₆₇₈₉"[count - 2] ?? ""}` : "Σ");
  const entries = new Writing(program, (part) => {
    if (part.sum) return several(entries.sums.length);
    if (part.extreme) return extremeOf(program, part);
    return part.name === "n" ? "n" : at(part.name, part.shape, part.place);
  });
  const numbers = new Writing(program, (part) => digits(program.results[part.number].data[part.place]));
  return { entries: entries.write(number, place, 0, root), numbers: numbers.write(number, place, 0, root), sums: entries.sums };
}

/** An entry written out: its arithmetic, and each sum in it as a table of its terms. */
export function trace(program, number, place) {
  const { operation } = program.given.values[number];
  const box = element("div", { class: "trace" });
  if (operation === "product" || operation === "sum") {
    box.append(...termsOf(program, number, place, "Σ"));
    return box;
  }
  const { entries, numbers, sums } = written(program, number, place, true);
  const value = digits(program.results[number].data[place]);
  box.append(element("p", {}, element("code", {}, `= ${entries}`)));
  if (numbers !== value) box.append(element("p", {}, element("code", {}, `= ${numbers}`)));
  if (numbers !== entries) box.append(element("p", {}, element("code", {}, `= ${value}`)));
  sums.forEach((part, k) => box.append(...termsOf(program, part.number, part.place, k ? `Σ${"₁₂₃₄₅₆₇₈₉"[k - 1] ?? ""}` : "Σ")));
  return box;
}

/** The terms of a sum, the first few of many until the others are opened, and what they come to. */
function termsOf(program, number, place, name) {
  const terms = program.terms(number, place);
  const isProduct = program.given.values[number].operation === "product";
  const rows = terms.map((factors) => {
    const own = factors.map((part) => written(program, part.number, part.place, false));
    const value = factors.reduce((product, part) => product * part.value, 1);
    const several = factors.length > 1 || own[0].numbers !== digits(value);
    return { value, row: () => element("tr", {}, element("td", {}, element("code", {}, own.map((each) => bracketed(each.entries, factors)).join(" · "))),
      element("td", {}, several ? own.map((each, k) => bracketed(each.numbers, factors, k)).join(" · ") : ""), element("td", { class: "right" }, digits(value))) };
  });
  const sum = rows.reduce((total, { value }) => total + value, 0);
  const all = rows.length <= MOST_TERMS + 1;
  const body = element("tbody", {}, ...(all ? rows : rows.slice(0, MOST_TERMS)).map(({ row }) => row()));
  if (!all) {
    const more = element("tr", {}, element("td", { colspan: 3 }));
    const open = element("button", { type: "button", class: "quiet" }, `${rows.length - MOST_TERMS - 1} more`);
    open.addEventListener("click", () => more.replaceWith(...rows.slice(MOST_TERMS, -1).map(({ row }) => row())));
    more.firstChild.append(open);
    body.append(more, rows.at(-1).row());
  }
  body.append(element("tr", {}, element("th", { colspan: 2, scope: "row" }, name), element("td", { class: "right" }, digits(sum))));
  return [element("p", {}, `${name === "Σ" ? "" : `${name}: `}${terms.length} ${isProduct ? "products" : "numbers"}, added up:`),
    element("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Terms" }, element("table", {}, body))];
}

const bracketed = (text, factors, k = 0) => (factors.length > 1 && (/ [-+] /.test(text) || (k && text.startsWith("-"))) ? `(${text})` : text);

/** The left operand: a negative number needs no brackets there. */
const leading = (text) => (/^\(-[\d.e-]+\)$/.test(text) ? text.slice(1, -1) : text);
