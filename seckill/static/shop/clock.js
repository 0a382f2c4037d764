/** The server's clock. The device's own is never asked what time it is, only how much time has passed. */
import { call } from "./api.js";
import { pause } from "./wait.js";

const RESYNC_MS = 60000;
const JUMP_MS = 1500;
const SAMPLES = 3;

// Until the first answer: when the page was made, as if it had arrived at once.
let offset = Number(document.body.dataset.now) - performance.now();
let running = null;
const listeners = new Set();

/** The server's time, in milliseconds since 1970. */
export const now = () => performance.now() + offset;

/** Call back whenever the clock has been set. */
export const onSync = (listener) => listeners.add(listener);

/** Set the clock by the quickest of a few answers: the server's time, and half the round trip. */
export function sync() {
  running ??= measure().finally(() => { running = null; });
  return running;
}

async function measure() {
  let best = null;
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const sentAt = performance.now();
    const answer = await call("GET", "/time/").catch(() => null);
    const trip = performance.now() - sentAt;
    if (answer?.ok && (best === null || trip < best.trip)) {
      best = { trip, offset: answer.body.server_time_ms + trip / 2 - performance.now() };
    } else if (!answer?.ok) {
      await pause(500);
    }
  }
  if (best === null) return;
  offset = best.offset;
  listeners.forEach((listener) => listener());
}

// performance.now() may stand still while a device sleeps; the two clocks then drift apart, and so it shows.
let apart = Date.now() - performance.now();
setInterval(() => {
  const seen = Date.now() - performance.now();
  if (Math.abs(seen - apart) > JUMP_MS) sync();
  apart = seen;
}, 1000);
setInterval(() => document.visibilityState === "visible" && sync(), RESYNC_MS);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && sync());
addEventListener("pageshow", sync);
addEventListener("online", sync);
