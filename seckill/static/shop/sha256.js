/**
 * SHA-256 (FIPS 180-4) of one text followed by many endings, without the asynchronous detour of crypto.subtle, which
 * would take ten times as long for so short inputs, and is missing where the page came by plain HTTP.
 */
const primes = [];
for (let n = 2; primes.length < 64; n += 1) if (primes.every((prime) => n % prime)) primes.push(n);
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
const K = Int32Array.from(primes, (prime) => fraction(Math.cbrt(prime)));
const START = Int32Array.from(primes.slice(0, 8), (prime) => fraction(Math.sqrt(prime)));
const W = new Int32Array(64);

function compress(state, block, at) {
  for (let i = 0; i < 16; i += 1) {
    const j = at + i * 4;
    W[i] = (block[j] << 24) | (block[j + 1] << 16) | (block[j + 2] << 8) | block[j + 3];
  }
  for (let i = 16; i < 64; i += 1) {
    const x = W[i - 15];
    const y = W[i - 2];
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    W[i] = (W[i - 16] + s0 + W[i - 7] + s1) | 0;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i += 1) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i] + W[i]) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
    h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0;
  }
  state[0] += a; state[1] += b; state[2] += c; state[3] += d;
  state[4] += e; state[5] += f; state[6] += g; state[7] += h;
}

/** Return a function from an ending (ASCII) to the eight words of SHA-256 of `prefix` and the ending. */
export function hasher(prefix) {
  const bytes = new TextEncoder().encode(prefix);
  const whole = bytes.length - (bytes.length % 64);
  const base = Int32Array.from(START);
  for (let at = 0; at < whole; at += 64) compress(base, bytes, at);
  const rest = bytes.subarray(whole);
  const block = new Uint8Array(128);
  const state = new Int32Array(8);
  return (ending) => {
    const length = rest.length + ending.length;
    const size = length < 56 ? 64 : 128;
    block.fill(0);
    block.set(rest);
    for (let i = 0; i < ending.length; i += 1) block[rest.length + i] = ending.charCodeAt(i);
    block[length] = 0x80;
    const bits = (whole + length) * 8;
    for (let i = 0; i < 4; i += 1) block[size - 1 - i] = (bits >>> (8 * i)) & 255;
    state.set(base);
    for (let at = 0; at < size; at += 64) compress(state, block, at);
    return state;
  };
}

/** Read 64 hex digits as eight words. */
export const words = (hex) => Int32Array.from({ length: 8 }, (_, i) => parseInt(hex.slice(i * 8, i * 8 + 8), 16));
