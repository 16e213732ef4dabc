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
    if (!this.decoded.has(number)) this.decoded.set(number, this.decode(number));
    return this.decoded.get(number);
  }

  async decode(number) {
    if (this.queries) return softmax(...(await Promise.all([this.queries.decode(number), this.keys.decode(number)])));
    const text = document.getElementById(`b${this.spec.first + number}`).textContent;
    const bytes = await inflate(fromBase85(text, this.spec.lengths[number]));
    const { rows, columns } = this;
    const count = rows * columns;
    switch (this.spec.encoding) {
      case "rows": {
        const maxima = new Float32Array(bytes.slice(0, 4 * rows).buffer);
        return new ByteRows(rows, columns, bytes.subarray(4 * rows), maxima, this.spec.levels);
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

  get largest() {
    this.most ??= this.values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
    return this.most;
  }
}

/** One byte for each value, in steps of the maximum of its row. */
class ByteRows extends Matrix {
  constructor(rows, columns, bytes, maxima, levels) {
    super(rows, columns, null);
    this.bytes = bytes;
    this.factors = maxima.map((most) => most / levels);
    this.most = maxima.reduce((most, value) => Math.max(most, value), 0);
  }

  at(i, j) {
    return this.bytes[i * this.columns + j] * this.factors[i];
  }

  row(i) {
    const start = i * this.columns;
    return Float32Array.from({ length: this.columns }, (_, j) => this.bytes[start + j] * this.factors[i]);
  }
}

/** The weights of queries [S, d] for keys [S, d]: softmax(q·kᵀ/√d), row by row. */
function softmax(queries, keys) {
  const { rows, columns } = queries;
  const [q, k] = [queries.values, keys.values];
  const values = new Float32Array(rows * rows);
  const scale = 1 / Math.sqrt(columns);
  for (let i = 0; i < rows; i++) {
    const [from, at] = [i * columns, i * rows];
    let most = -Infinity;
    for (let j = 0; j < rows; j++) {
      let score = 0;
      for (let c = 0, key = j * columns; c < columns; c++, key++) score += q[from + c] * k[key];
      values[at + j] = score * scale;
      if (score * scale > most) most = score * scale;
    }
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
