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

  async decode(number) {
    if (this.queries) return softmax(...(await Promise.all([this.queries.decode(number), this.keys.decode(number)])));
    const text = document.getElementById(`b${this.spec.first + number}`).textContent;
    const { rows, columns } = this;
    if (this.spec.encoding === "scores") return fromScores(fromBase85(text, this.spec.lengths[number]), rows, this.spec.width);
    const bytes = await inflate(fromBase85(text, this.spec.lengths[number]));
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
        return new Matrix(rows, columns, new Float32Array(bytes.buffer, bytes.byteOffset, count));
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

/** The weights of a head whose scores are stored as factors A and B; inspect/scores.py says how. */
function fromScores(bytes, rows, width) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const step = view.getFloat32(0, true);
  const factors = [new Float32Array(rows * width), new Float32Array(rows * width)];
  let at = 4 + 10 * width; // the next byte of the codes
  let held = 0; // bits that were read, and how many of them are left
  let left = 0;
  for (let column = 0; column < 2 * width; column++) {
    const mean = view.getFloat32(4 + 4 * column, true);
    const low = bytes[4 + 8 * width + column];
    const values = factors[column < width ? 0 : 1];
    for (let i = 0, to = column % width; i < rows; i++, to += width) {
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
  const [queries, keys] = factors.map((values) => new Matrix(rows, width, values));
  return softmax(queries, keys, 1);
}

/** The weights of queries [S, d] for keys [S, d]: softmax(q·kᵀ/√d), row by row. */
function softmax(queries, keys, scale = 1 / Math.sqrt(queries.columns)) {
  const { rows, columns } = queries;
  const [q, k] = [queries.values, keys.values];
  const values = new Float32Array(rows * rows);
  for (let i = 0; i < rows; i++) {
    const [from, at] = [i * columns, i * rows];
    // Four keys at a time: additions to one sum wait for each other.
    let j = 0;
    for (; j + 4 <= rows; j += 4) {
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
    for (; j < rows; j++) {
      let score = 0;
      for (let c = 0; c < columns; c++) score += q[from + c] * k[j * columns + c];
      values[at + j] = score * scale;
    }
    let most = -Infinity;
    for (let j = 0; j < rows; j++) if (values[at + j] > most) most = values[at + j];
    let sum = 0;
    for (let j = 0; j < rows; j++) sum += values[at + j] = Math.exp(values[at + j] - most);
    for (let j = 0; j < rows; j++) values[at + j] /= sum;
  }
  return new Matrix(rows, rows, values);
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
