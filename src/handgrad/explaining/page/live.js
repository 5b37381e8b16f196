/** The training step, run in the page: the operations that handgrad's engines run, in their order, in float64. */

const OF_ONE = {
  negative: (a) => -a, absolute: Math.abs, exp: Math.exp, log: Math.log, log1p: Math.log1p, expm1: Math.expm1,
  tanh: Math.tanh, sqrt: Math.sqrt, sign: Math.sign, sin: Math.sin, cos: Math.cos, logical_not: (a) => Number(!a),
};
const OF_TWO = {
  add: (a, b) => a + b, subtract: (a, b) => a - b, multiply: (a, b) => a * b, divide: (a, b) => a / b, power: (a, b) => a ** b,
  maximum: (a, b) => Math.max(a, b), minimum: (a, b) => Math.min(a, b), floor_divide: (a, b) => Math.floor(a / b),
  less: (a, b) => Number(a < b), less_equal: (a, b) => Number(a <= b), greater: (a, b) => Number(a > b),
  greater_equal: (a, b) => Number(a >= b), equal: (a, b) => Number(a === b), not_equal: (a, b) => Number(a !== b),
  logical_and: (a, b) => Number(a && b), logical_or: (a, b) => Number(a || b),
};
const VIEWS = ["reshape", "transpose", "slice"];
const MOST_LEAVES = 200;
const ROUNDING = 1e-13; // of the sizes of what is added up
const [PLACES, MOST_PLACES] = [new Map(), 500];
const REDUCE = { sum: [0, (a, b) => a + b], max: [-Infinity, Math.max], min: [Infinity, Math.min] };

/** A size in rows of the batch as a number: "8", "n", "3n". */
function sizeAt(text, n) {
  return text.endsWith("n") ? n * Number(text.slice(0, -1) || 1) : Number(text);
}

const count = (shape) => shape.reduce((product, size) => product * size, 1);

/** The distance of neighbours along each axis; 0 where an axis has one entry, so that it is broadcast. */
function strides(shape, axes = shape.length) {
  const found = new Array(axes).fill(0);
  for (let axis = shape.length - 1, stride = 1; axis >= 0; stride *= shape[axis], axis--) {
    if (shape[axis] > 1) found[axis + axes - shape.length] = stride;
  }
  return found;
}

/** The place, in an array with these strides, of every entry of a shape; found once for each. */
function placesOf(shape, steps) {
  const key = `${shape}|${steps}`;
  if (!PLACES.has(key)) {
    if (PLACES.size > MOST_PLACES) PLACES.clear();
    const [places, index] = [new Int32Array(count(shape)), new Array(shape.length).fill(0)];
    for (let k = 0, place = 0; k < places.length; k++) {
      places[k] = place;
      for (let axis = shape.length - 1; axis >= 0; axis--) {
        index[axis] += 1;
        place += steps[axis];
        if (index[axis] < shape[axis]) break;
        place -= steps[axis] * shape[axis];
        index[axis] = 0;
      }
    }
    PLACES.set(key, places);
  }
  return PLACES.get(key);
}

/** An array in the shape that it is broadcast to. */
export function broadcast(shape, input) {
  return { shape, data: elementwise(shape, [input], (value) => value) };
}

function elementwise(shape, inputs, combine) {
  const data = new Float64Array(count(shape));
  const [a, b, c] = inputs.map((input) => input.data);
  if (inputs.every((input) => input.data.length === data.length)) { // each entry with those at its own place
    if (inputs.length === 1) for (let k = 0; k < data.length; k++) data[k] = combine(a[k]);
    else for (let k = 0; k < data.length; k++) data[k] = combine(a[k], b[k], c?.[k]);
    return data;
  }
  const [i, j, l] = inputs.map((input) => placesOf(shape, strides(input.shape, shape.length)));
  if (inputs.length === 1) for (let k = 0; k < data.length; k++) data[k] = combine(a[i[k]]);
  else if (inputs.length === 2) for (let k = 0; k < data.length; k++) data[k] = combine(a[i[k]], b[j[k]]);
  else for (let k = 0; k < data.length; k++) data[k] = combine(a[i[k]], b[j[k]], c[l[k]]);
  return data;
}

function reduce(input, axes, [start, combine]) {
  const kept = input.shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
  const data = new Float64Array(count(kept)).fill(start);
  placesOf(input.shape, strides(kept)).forEach((to, k) => { data[to] = combine(data[to], input.data[k]); });
  return data;
}

/** A product of matrices, or of stacks of them; a vector on the right is a matrix of one column. */
export function product(shape, left, right) {
  const rightShape = right.shape.length > 1 ? right.shape : [...right.shape, 1];
  const [rows, inner, columns] = [left.shape.at(-2), left.shape.at(-1), rightShape.at(-1)];
  const stacks = shape.slice(0, right.shape.length > 1 ? -2 : -1);
  const data = new Float64Array(count(shape));
  const steps = [[left.shape.slice(0, -2), rows * inner], [rightShape.slice(0, -2), inner * columns]];
  const [own, other] = steps.map(([each, size]) => placesOf(stacks, strides(each, stacks.length).map((stride) => stride * size)));
  for (let stack = 0; stack < own.length; stack++) {
    for (let r = 0; r < rows; r++) {
      for (let i = 0; i < inner; i++) {
        const factor = left.data[own[stack] + r * inner + i];
        const [from, to] = [other[stack] + i * columns, (stack * rows + r) * columns];
        for (let c = 0; c < columns; c++) data[to + c] += factor * right.data[from + c];
      }
    }
  }
  return data;
}

/** The entries of a view in the order of its own shape. */
function view(shape, input, steps, offset = 0) {
  return Float64Array.from(placesOf(shape, steps), (from) => input.data[offset + from]);
}

const OPERATIONS = {
  order: (state, { shape }) => Float64Array.from({ length: count(shape) }, (_, k) => k),
  source: (state, { attribute }) => state.arrays[attribute],
  load: (state, { attribute }) => state.arrays[attribute],
  scalar: (state, { attribute }) => [state.scalars[attribute]],
  size: (state, { attribute }) => [sizeAt(attribute, state.n)],
  constant: (state, { attribute }) => [attribute],
  table: (state, { attribute }) => attribute,
  reshape: (state, value, [input]) => input.data,
  convert: (state, value, [input]) => input.data,
  copy: (state, value, [input]) => input.data,
  transpose: (state, { shape, attribute }, [input]) => view(shape, input, attribute.map((axis) => strides(input.shape)[axis])),
  slice: (state, { shape, attribute: [axis, start] }, [input]) => {
    const steps = strides(input.shape);
    return view(shape, input, steps, sizeAt(start, state.n) * steps[axis]);
  },
  broadcast: (state, { shape }, [input]) => new Float64Array(count(shape)).fill(input.data[0]),
  product: (state, { shape }, [left, right]) => product(shape, left, right),
  is_class: (state, { shape }, [label]) => Float64Array.from({ length: count(shape) },
    (_, k) => Number(label.data[Math.floor(k / shape.at(-1))] === k % shape.at(-1))),
  take: (state, { shape }, [table, index]) => {
    const width = count(table.shape.slice(1));
    return Float64Array.from({ length: count(shape) }, (_, k) => table.data[index.data[Math.floor(k / width)] * width + (k % width)]);
  },
  add_rows_at: (state, { shape }, [rows, index]) => {
    const [data, width] = [new Float64Array(count(shape)), shape.at(-1)];
    rows.data.forEach((number, k) => { data[index.data[Math.floor(k / width)] * width + (k % width)] += number; });
    return data;
  },
  concatenate: (state, { shape, attribute }, parts) => {
    const [data, steps] = [new Float64Array(count(shape)), strides(shape)];
    let start = 0;
    for (const part of parts) {
      placesOf(part.shape, steps).forEach((to, k) => { data[start * steps[attribute] + to] = part.data[k]; });
      start += part.shape[attribute];
    }
    return data;
  },
  where: (state, { shape }, inputs) => elementwise(shape, inputs, (chosen, a, b) => (chosen ? a : b)),
};
for (const [name, combine] of Object.entries({ ...OF_ONE, ...OF_TWO })) {
  OPERATIONS[name] = (state, { shape }, inputs) => elementwise(shape, inputs, combine);
}
for (const [name, how] of Object.entries(REDUCE)) {
  OPERATIONS[name] = (state, { attribute }, [input]) => reduce(input, attribute, how);
}

/**
 * A program that runs. `arrays` are its parameters, buffers, slots and inputs, to be changed at will; `changed`, by the
 * number of an operation, is what becomes of its result: a mistake.
 */
export class LiveProgram {
  constructor(given) {
    this.given = given;
    this.called = Object.fromEntries(Object.entries(given.names).map(([name, number]) => [number, name]));
    this.scalars = { learning_rate: given.learning_rate, step: 1, seed: 0 };
    this.changed = new Map();
    this.reset();
  }

  reset() {
    this.arrays = Object.fromEntries(Object.entries(this.given.arrays).map(([name, numbers]) => [name, Float64Array.from(numbers)]));
    this.scalars.step = 1;
    this.run();
  }

  /** Compute the operations from one to another, by default every one: the new weights too, which `step` then takes. */
  run(last = Infinity, first = 0) {
    const { values, inputs } = this.given;
    const source = values.find((value) => value.operation === "source" && value.attribute === inputs[0]);
    const width = source.shape.slice(1).reduce((product, size) => product * Number(size), 1);
    this.n = this.arrays[inputs[0]].length / width;
    this.results = first ? this.results.slice(0, first) : [];
    for (let number = first; number < Math.min(values.length, last + 1); number++) {
      const value = values[number];
      const shape = value.shape.map((size) => sizeAt(size, this.n));
      const operands = value.inputs.map((k) => this.results[k]);
      const data = OPERATIONS[value.operation](this, { shape, attribute: value.attribute }, operands);
      this.results.push(this.changed.get(number)?.({ shape, data }, operands, this) ?? { shape, data });
    }
    return this;
  }

  step() {
    for (const [name, number] of Object.entries(this.given.assigned)) this.arrays[name] = Float64Array.from(this.results[number].data);
    this.scalars.step += 1;
    return this.run();
  }

  /** The shape and the numbers of a name, before the update. */
  value(name) {
    return this.results[this.given.names[name]];
  }

  get loss() {
    return this.value("loss").data[0];
  }

  /** The same program, to be trained by itself. */
  copy() {
    return Object.assign(Object.create(LiveProgram.prototype), this, { arrays: { ...this.arrays }, scalars: { ...this.scalars } });
  }

  /** The same program with other arrays, as far as a value, for a loss nearby or predictions elsewhere. */
  at(arrays, name) {
    return Object.assign(this.copy(), { arrays: { ...this.arrays, ...arrays } }).run(this.given.names[name]);
  }

  /**
   * A row's Jacobian, entry by entry, from the lines between two gradients: the upstream one is 1 at one entry after the
   * other. What reaches the second by other ways, where the first is 0, is taken off.
   */
  jacobian(upstream, gradient, row) {
    const [from, to] = [upstream, gradient].map((name) => this.given.names[name]);
    const { shape, data } = this.results[from];
    const partOf = (number, length) => (this.given.values[number].shape[0] === "n" ? [(row * length) / this.n, ((row + 1) * length) / this.n] : [0, length]);
    const [start, end] = partOf(from, data.length);
    const gradientOf = (unit) => {
      const changed = new Map([...this.changed, [from, () => ({ shape, data: unit })]]);
      const own = Object.assign(this.copy(), { changed }).run(to, from).results[to].data;
      return own.slice(...partOf(to, own.length));
    };
    const without = gradientOf(new Float64Array(data.length));
    return Array.from({ length: end - start }, (_, entry) => {
      const found = gradientOf(new Float64Array(data.length).fill(1, start + entry, start + entry + 1));
      return Array.from(found, (value, k) => value - without[k]);
    }).flat();
  }

  /** What an entry of an operation's result is made of: terms that are added up, each a product of entries; [] if it is neither. */
  terms(number, place) {
    const { operation, inputs, attribute } = this.given.values[number];
    const { shape } = this.results[number];
    if (operation === "product" && shape.length === 2 && this.results[inputs[1]].shape.length === 2) {
      const [inner, columns] = [this.results[inputs[0]].shape[1], shape[1]];
      const [row, column] = [Math.floor(place / columns), place % columns];
      return Array.from({ length: inner }, (_, i) => [this.origin(inputs[0], row * inner + i), this.origin(inputs[1], i * columns + column)]);
    }
    if (operation === "sum") {
      const input = this.results[inputs[0]];
      const kept = strides(input.shape.map((size, axis) => (attribute.includes(axis) ? 1 : size)));
      const found = [];
      placesOf(input.shape, kept).forEach((to, k) => { if (to === place) found.push([this.origin(inputs[0], k)]); });
      return found;
    }
    if (operation === "is_class") return [[this.origin(inputs[0], Math.floor(place / shape.at(-1)))]];
    if (operation === "take") {
      const width = count(this.results[inputs[0]].shape.slice(1));
      return [[this.origin(inputs[0], this.results[inputs[1]].data[Math.floor(place / width)] * width + (place % width))]];
    }
    if (VIEWS.includes(operation)) return [[this.origin(inputs[0], this.seen(number, place))]];
    if (!(operation in OF_ONE || operation in OF_TWO || ["where", "broadcast", "convert", "copy"].includes(operation))) return [];
    const index = indexOf(shape, place);
    return [inputs.map((input) => {
      const steps = strides(this.results[input].shape, shape.length);
      return this.origin(input, index.reduce((sum, each, axis) => sum + each * steps[axis], 0));
    })];
  }

  /** The named entries that an entry is made of, through the unnamed parts of its line. */
  leaves(number, place, found = new Map()) {
    for (const part of this.terms(number, place).flat()) {
      if (part.name) found.set(`${part.name} ${part.place}`, part);
      else if (found.size < MOST_LEAVES) this.leaves(part.number, part.place, found);
    }
    return [...found.values()];
  }

  /** The named value that an entry is of, through transposes and other shapes, with its place there. */
  origin(number, place) {
    const { operation, inputs } = this.given.values[number];
    const { shape, data } = this.results[number];
    const name = this.nameOf(number);
    if (name || !VIEWS.includes(operation)) return { number, place, name, shape, value: data[place] };
    return this.origin(inputs[0], this.seen(number, place));
  }

  /** Where an entry of a view is in what it is a view of. */
  seen(number, place) {
    const { operation, inputs, attribute } = this.given.values[number];
    if (operation === "reshape") return place;
    const [own, steps] = [this.results[number].shape, strides(this.results[inputs[0]].shape)];
    const index = indexOf(own, place);
    if (operation === "slice") return index.reduce((sum, each, axis) => sum + each * steps[axis], sizeAt(attribute[1], this.n) * steps[attribute[0]]);
    return index.reduce((sum, each, axis) => sum + each * steps[attribute[axis]], 0);
  }

  /** The operations of a line: those that its value is computed by from the values of other names. */
  ofLine(target) {
    const found = [];
    const visit = (number) => {
      if (found.includes(number) || (found.length && this.nameOf(number))) return;
      found.push(number);
      this.given.values[number].inputs.forEach(visit);
    };
    visit(this.given.names[target]);
    return found;
  }

  /** Whether the loss's own gradient reaches an operation: it is part of a gradient. */
  carries(number) {
    const { values, names } = this.given;
    this.carried ??= values.reduce((known, { inputs }, k) => known.add(k === names.dloss || inputs.some((input) => known.has(input)) ? k : -1), new Set());
    return this.carried.has(number);
  }

  /** How many classes, or rows of a table, an input counts: its entries are whole numbers below that; null for other arrays. */
  limitOf(name) {
    const { values, names } = this.given;
    const reads = (number) => number === names[name] || (VIEWS.includes(values[number].operation) && reads(values[number].inputs[0]));
    const user = values.findIndex(({ operation, inputs }) => ["is_class", "take"].includes(operation) && reads(inputs.at(-1)));
    if (user < 0) return null;
    return values[user].operation === "take" ? this.results[values[user].inputs[0]].shape[0] : this.results[user].shape.at(-1);
  }

  /** Whether a sum is 0 but for the rounding of what cancels in it. */
  isRounding(number) {
    if (!["sum", "product"].includes(this.given.values[number].operation)) return false;
    const { data } = this.results[number];
    const sizes = Array.from(data, (_, place) => this.terms(number, place).reduce((sum, term) => sum + Math.abs(term.reduce((all, { value }) => all * value, 1)), 0));
    return data.every((value, k) => Math.abs(value) <= ROUNDING * sizes[k]);
  }

  nameOf(number) {
    return this.called[number] ?? "";
  }
}

/** The indices along each axis of the entry at a place. */
export function indexOf(shape, place) {
  const index = [];
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    index.unshift(place % shape[axis]);
    place = Math.floor(place / shape[axis]);
  }
  return index;
}
