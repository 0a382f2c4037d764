/** Countdowns by the server's clock, all moved by one timer. */
import { now } from "./clock.js";

const TICK_MS = 200;
const running = new Set();

/** Write a duration as 1:02:03 or 02:03; what has begun counts as a whole second. */
export function duration(ms) {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const [days, hours] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24];
  const two = (number) => String(number).padStart(2, "0");
  const short = `${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
  if (days > 0) return `${days}d ${two(hours)}:${short}`;
  return hours > 0 ? `${hours}:${short}` : short;
}

/** Call `show(msLeft)` about five times a second; returns a function that stops it. */
export function countdown(untilMs, show) {
  const entry = () => show(untilMs - now());
  running.add(entry);
  entry();
  return () => running.delete(entry);
}

setInterval(() => running.forEach((entry) => entry()), TICK_MS);
