// Arrays are texts of compressed bytes, in base 85. A part, the last two axes, is decoded when it is first read.

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%()*+-.:;=?@[]^_{|}~";
const DIGITS = new Uint8Array(128);
for (let i = 0; i < 85; i++) DIGITS[ALPHABET.charCodeAt(i)] = i;

/** Five characters for four bytes, the highest first. */
function fromBase85(text, length) {
  const bytes = new Uint8Array((text.length / 5) * 4);
  for (let from = 0, to = 0; from < text.length; to += 4) {
    let number = DIGITS[text.charCodeAt(from)] * 85 + DIGITS[text.charCodeAt(from + 1)];
    number = (number * 85 + DIGITS[text.charCodeAt(from + 2)]) * 85 + DIGITS[text.charCodeAt(from + 3)];
    number = number * 85 + DIGITS[text.charCodeAt(from + 4)];
    from += 5;
    bytes[to] = number >>> 24;
    bytes[to + 1] = number >>> 16;
    bytes[to + 2] = number >>> 8;
    bytes[to + 3] = number;
  }
  return bytes.subarray(0, length);
}

/** The bytes that zlib compressed. */
async function inflate(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Parts with more numbers than LARGE are unpacked again if MOST_LARGE others were read since. */
const LARGE = 20_000;
const MOST_LARGE = 24;

class PackedArray {
  constructor(spec) {
    this.spec = spec;
    this.shape = spec.shape;
    this.rows = spec.shape.length > 1 ? spec.shape.at(-2) : 1;
    this.columns = spec.shape.at(-1);
    this.decoded = new Map();
    if (spec.encoding === "softmax") [this.queries, this.keys] = [new PackedArray(spec.queries), new PackedArray(spec.keys)];
  }

  /** The part at these indices of the leading axes, as a Matrix. */
  part(...indices) {
    let number = 0;
    indices.forEach((index, axis) => {
      number = number * this.shape[axis] + index;
    });
    return this.numbered(number);
  }

  numbered(number) {
    const found = this.decoded.get(number) ?? this.decode(number);
    // The last is the latest; of large parts few are kept.
    this.decoded.delete(number);
    this.decoded.set(number, found);
    if (this.decoded.size > MOST_LARGE && this.rows * this.columns > LARGE) this.decoded.delete(this.decoded.keys().next().value);
    return found;
  }

  /** One number of a part; of weights that are computed row by row, without the others. */
  async value(row, column, ...indices) {
    const number = indices.reduce((sum, index, axis) => sum * this.shape[axis] + index, 0);
    if (this.decoded.has(number) || !(this.queries || this.spec.encoding === "scores")) return (await this.numbered(number)).at(row, column);
    const [queries, keys, scale] = await this.factors(number);
    return softmax(new Matrix(1, queries.columns, queries.row(row)), keys, scale).at(0, column);
  }

  /** What weights are the softmax of: queries, keys and a factor. */
  async factors(number) {
    if (this.queries) return [...(await Promise.all([this.queries.decode(number), this.keys.decode(number)])), 1 / Math.sqrt(this.queries.columns)];
    const { width } = this.spec;
    const both = readCoded(this.bytes(number), this.rows, 2 * width);
    return [...[0, width].map((from) => both.between(from, from + width)), 1];
  }

  /** The bytes of a part as they are stored. */
  bytes(number) {
    return fromBase85(document.getElementById(`b${this.spec.first + number}`).textContent, this.spec.lengths[number]);
  }

  /** The bytes of a part that were compressed: by themselves, or those of all parts together, which are of one length. */
  async inflated(number) {
    const { joined } = this.spec;
    if (!joined) return inflate(this.bytes(number));
    this.all ??= inflate(this.bytes(0));
    return (await this.all).subarray(number * joined, (number + 1) * joined);
  }

  async decode(number) {
    if (this.queries || this.spec.encoding === "scores") return softmax(...(await this.factors(number)));
    const { rows, columns } = this;
    if (this.spec.encoding === "coded") return readCoded(await this.inflated(number), rows, columns);
    if (this.spec.encoding === "cosines") return productsOf(readCoded(await this.inflated(number), rows, this.spec.width));
    const bytes = await this.inflated(number);
    const count = rows * columns;
    switch (this.spec.encoding) {
      case "rows":
      case "coarse": {
        const maxima = new Float32Array(bytes.slice(0, 4 * rows).buffer);
        const values = new Float32Array(count);
        for (let i = 0, at = 0; i < rows; i++) {
          const factor = maxima[i] / this.spec.levels;
          for (let j = 0; j < columns; j++, at++) values[at] = bytes[4 * rows + at] * factor;
        }
        return new Matrix(rows, columns, values);
      }
      case "unit": {
        const values = new Float32Array(count);
        for (let i = 0; i < count; i++) values[i] = (((bytes[i] | (bytes[count + i] << 8)) << 16) >> 16) / this.spec.unit;
        return new Matrix(rows, columns, values);
      }
      case "columns": {
        const values = new Float32Array(count);
        const most = new Float32Array(bytes.slice(0, 4 * columns).buffer);
        const start = 4 * columns;
        for (let j = 0, at = start; j < columns; j++) {
          const step = most[j] / this.spec.steps;
          for (let i = 0; i < rows; i++, at++) {
            values[i * columns + j] = (((bytes[at] | (bytes[count + at] << 8)) << 16) >> 16) * step;
          }
        }
        return new Matrix(rows, columns, values);
      }
      case "half": {
        const values = new Float32Array(count);
        for (let i = 0; i < count; i++) values[i] = fromHalf(bytes[i] | (bytes[count + i] << 8));
        return new Matrix(rows, columns, values);
      }
      default:
        return new Matrix(rows, columns, new Float32Array(bytes.slice(0, 4 * count).buffer));
    }
  }
}

/** Half precision, IEEE 754, to a number. */
function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1024 + fraction) * 2 ** (exponent - 25);
}

class Matrix {
  constructor(rows, columns, values) {
    this.rows = rows;
    this.columns = columns;
    this.values = values;
  }

  at(i, j) {
    return this.values[i * this.columns + j];
  }

  row(i) {
    return this.values.subarray(i * this.columns, (i + 1) * this.columns);
  }

  column(j) {
    return Float32Array.from({ length: this.rows }, (_, i) => this.at(i, j));
  }

  /** Some of the columns. */
  between(from, to) {
    const values = new Float32Array(this.rows * (to - from));
    for (let i = 0; i < this.rows; i++) values.set(this.row(i).subarray(from, to), i * (to - from));
    return new Matrix(this.rows, to - from, values);
  }

  /** The largest absolute value of a row. */
  largestOf(i) {
    this.mosts ??= Float32Array.from({ length: this.rows }, (_, row) => largestOf(this.row(row), 0));
    return this.mosts[i];
  }

  get largest() {
    this.most ??= largestOf(this.values, 0);
    return this.most;
  }
}

/** Columns of numbers that are stored as multiples of one step, by Golomb-Rice codes; inspect/scores.py says how. */
function readCoded(bytes, rows, columns) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const step = view.getFloat32(0, true);
  const values = new Float32Array(rows * columns);
  let at = 4 + 5 * columns; // the next byte of the codes
  let held = 0; // bits that were read, and how many of them are left
  let left = 0;
  for (let column = 0; column < columns; column++) {
    const mean = view.getFloat32(4 + 4 * column, true);
    const low = bytes[4 + 4 * columns + column];
    for (let i = 0, to = column; i < rows; i++, to += columns) {
      let high = 0;
      for (;;) {
        if (left === 0) [held, left] = [bytes[at++], 8];
        left--;
        if (!((held >> left) & 1)) break;
        high++;
      }
      while (left < low) [held, left] = [((held & ((1 << left) - 1)) << 8) | bytes[at++], left + 8];
      left -= low;
      const code = (high << low) | ((held >> left) & ((1 << low) - 1));
      values[to] = (code & 1 ? -(code + 1) / 2 : code / 2) * step + mean;
    }
  }
  return new Matrix(rows, columns, values);
}

/** The products of all rows with each other, between −1 and 1. */
function productsOf(factor) {
  const { rows, columns, values } = factor;
  const found = new Float32Array(rows * rows);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j <= i; j++) {
      let sum = 0;
      for (let c = 0; c < columns; c++) sum += values[i * columns + c] * values[j * columns + c];
      found[i * rows + j] = found[j * rows + i] = clamp(sum, -1, 1);
    }
  }
  return new Matrix(rows, rows, found);
}

/** The weights of queries [Q, d] for keys [S, d]: softmax(q·kᵀ·scale), row by row. */
function softmax(queries, keys, scale) {
  const { rows, columns } = queries;
  const count = keys.rows;
  const [q, k] = [queries.values, keys.values];
  const values = new Float32Array(rows * count);
  for (let i = 0; i < rows; i++) {
    const [from, at] = [i * columns, i * count];
    // Four keys at a time: additions to one sum wait for each other.
    let j = 0;
    for (; j + 4 <= count; j += 4) {
      const key = j * columns;
      let [one, two, three, four] = [0, 0, 0, 0];
      for (let c = 0; c < columns; c++) {
        const number = q[from + c];
        one += number * k[key + c];
        two += number * k[key + columns + c];
        three += number * k[key + 2 * columns + c];
        four += number * k[key + 3 * columns + c];
      }
      values[at + j] = one * scale;
      values[at + j + 1] = two * scale;
      values[at + j + 2] = three * scale;
      values[at + j + 3] = four * scale;
    }
    for (; j < count; j++) {
      let score = 0;
      for (let c = 0; c < columns; c++) score += q[from + c] * k[j * columns + c];
      values[at + j] = score * scale;
    }
    let most = -Infinity;
    for (let j = 0; j < count; j++) if (values[at + j] > most) most = values[at + j];
    let sum = 0;
    for (let j = 0; j < count; j++) sum += values[at + j] = Math.exp(values[at + j] - most);
    for (let j = 0; j < count; j++) values[at + j] /= sum;
  }
  return new Matrix(rows, count, values);
}

/** The mean of matrices of one shape. */
function mean(matrices) {
  const { rows, columns } = matrices[0];
  const values = new Float32Array(rows * columns);
  for (const matrix of matrices) {
    for (let i = 0, at = 0; i < rows; i++) {
      for (let j = 0; j < columns; j++, at++) values[at] += matrix.at(i, j);
    }
  }
  for (let at = 0; at < values.length; at++) values[at] /= matrices.length;
  return new Matrix(rows, columns, values);
}
