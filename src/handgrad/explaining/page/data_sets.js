/** Rows to learn from, drawn in the page: points of a line or a plane, with noise, and what a network is given of them. */

/**
 * Random numbers from 0 to 1, the same for the same seed: mulberry32 (Tommy Ettinger, 2017), 32 bits of state. They need only
 * look random; handgrad's own draws are NumPy's, and are others.
 */
export function generator(seed) {
  let state = (Math.imul(seed, 0x9e3779b9) ^ 0x5bd1e995) >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  // Box and Muller (1958)
  const normal = () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
  return { uniform, normal };
}

/** Numbers from 0 on, in a random order (Fisher and Yates). */
export function shuffled(length, { uniform }) {
  const order = Array.from({ length }, (_, k) => k);
  for (let k = length - 1; k > 0; k--) {
    const other = Math.floor(uniform() * (k + 1));
    [order[k], order[other]] = [order[other], order[k]];
  }
  return order;
}

const turned = (angle, radius) => [radius * Math.cos(angle), radius * Math.sin(angle)];
const hill = (x, y, [a, b]) => Math.exp(-2 * ((x - a) ** 2 + (y - b) ** 2));

/** By name: what is predicted, from how many coordinates, and a point of a class, or a target at a point. */
export const DATA_SETS = {
  moons: { label: "two moons", task: "classification", coordinates: 2, point: ({ uniform }, label) => {
    const [x, y] = turned(Math.PI * uniform(), 1);
    return label ? [1 - x, 0.5 - y] : [x, y];
  } },
  circles: { label: "two circles", task: "classification", coordinates: 2, point: ({ uniform }, label) => turned(2 * Math.PI * uniform(), label ? 0.45 : 1) },
  xor: { label: "XOR", task: "classification", coordinates: 2, point: ({ uniform }, label) => {
    const [x, y] = [2 * uniform() - 1, uniform()];
    return [x, (x > 0) === (label === 1) ? -y : y];
  } },
  spirals: { label: "two spirals", task: "classification", coordinates: 2, point: ({ uniform }, label) => {
    const along = Math.sqrt(uniform());
    return turned(3 * Math.PI * along + Math.PI * label, along);
  } },
  gaussians: { label: "two Gaussians", task: "classification", coordinates: 2, point: ({ normal }, label) => [0, 1].map(() => (label ? 0.6 : -0.6) + 0.3 * normal()) },
  sine: { label: "a sine", task: "regression", coordinates: 1, target: (x) => Math.sin(3 * x) },
  line: { label: "a line", task: "regression", coordinates: 1, target: (x) => 0.8 * x },
  slope: { label: "a slope", task: "regression", coordinates: 2, target: (x, y) => (x + y) / 2 },
  hills: { label: "a hill and a hollow", task: "regression", coordinates: 2, target: (x, y) => hill(x, y, [0.5, 0.5]) - hill(x, y, [-0.5, -0.5]) },
};

/** Draw rows: `points` of one or two coordinates after one another, and `t`. Noise is a standard deviation: of coordinates of classes, else of targets. */
export function rowsOf(name, rows, noise, seed) {
  const { coordinates, point, target } = DATA_SETS[name];
  const random = generator(seed);
  const [points, t] = [new Float64Array(rows * coordinates), new Float64Array(rows)];
  for (let row = 0; row < rows; row++) {
    const own = point ? point(random, row % 2).map((value) => value + noise * random.normal())
      : Array.from({ length: coordinates }, () => 2 * random.uniform() - 1);
    points.set(own, row * coordinates);
    t[row] = point ? row % 2 : target(...own) + noise * random.normal();
  }
  return { points, t };
}

/** What a network may be given of a point. */
export const FEATURES = {
  x: { label: "x", of: (x) => x },
  y: { label: "y", of: (x, y) => y, both: true },
  xx: { label: "x²", of: (x) => x * x },
  yy: { label: "y²", of: (x, y) => y * y, both: true },
  xy: { label: "x·y", of: (x, y) => x * y, both: true },
  sinx: { label: "sin πx", of: (x) => Math.sin(Math.PI * x) },
  siny: { label: "sin πy", of: (x, y) => Math.sin(Math.PI * y), both: true },
};

/** The inputs of points: a column for each feature. */
export function inputsOf(points, coordinates, features) {
  const found = new Float64Array((points.length / coordinates) * features.length);
  for (let k = 0; k < found.length; k++) {
    const row = Math.floor(k / features.length);
    found[k] = FEATURES[features[k % features.length]].of(...points.subarray(row * coordinates, (row + 1) * coordinates));
  }
  return found;
}
