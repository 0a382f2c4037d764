/** The challenge before a ticket: find the number whose hash is asked for (ALTCHA version 1), in the background. */
import { hasher, words } from "./sha256.js";

const CHUNK = 500;

/** Yield after each chunk of tries; the last value is the number, or null when there is none. */
export function* search({ salt, challenge, maxNumber }) {
  const hash = hasher(salt);
  const wanted = words(challenge);
  for (let number = 0; number <= maxNumber; number += 1) {
    const state = hash(String(number));
    if (state[0] === wanted[0] && state.every((word, i) => word === wanted[i])) return number;
    if (number % CHUNK === CHUNK - 1) yield;
  }
  return null;
}

/** Solve a challenge; returns the proof for the ticket, or null when it has no solution. */
export async function solve(challenge) {
  const number = await inWorker(challenge).catch(() => inChunks(challenge));
  if (number === null) return null;
  const { algorithm, challenge: digest, salt, signature } = challenge;
  return btoa(JSON.stringify({ algorithm, challenge: digest, number, salt, signature }));
}

function inWorker(challenge) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL("./challenge-worker.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => { worker.terminate(); resolve(data); };
    worker.onerror = () => { worker.terminate(); reject(new Error("no worker")); };
    worker.postMessage(challenge);
  });
}

/** Without a worker: some tries at a time, so that the page stays alive. */
export async function inChunks(challenge) {
  const tries = search(challenge);
  for (;;) {
    const { done, value } = tries.next();
    if (done) return value;
    await new Promise((resolve) => setTimeout(resolve));
  }
}
