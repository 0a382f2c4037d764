/** Waiting: with a random part, so that a crowd does not come back as one. */

export const jitter = (ms) => ms * (0.75 + Math.random() / 2);

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Wait, but no longer than until the connection or the reader is back. */
export function nap(ms) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      removeEventListener("online", done);
      removeEventListener("pageshow", done);
      document.removeEventListener("visibilitychange", back);
      resolve();
    };
    const back = () => document.visibilityState === "visible" && done();
    const timer = setTimeout(done, ms);
    addEventListener("online", done);
    addEventListener("pageshow", done);
    document.addEventListener("visibilitychange", back);
  });
}

/** Wait as a 429 or 503 asks: Retry-After, never less, and a random part of a second more. */
export const pauseFor = (answer) => pause(Math.max(answer.retryMs, 500) + Math.random() * 1000);

/** Waits between polls: half a second, then twice as long each time, up to five seconds. */
export const backoff = (tries) => jitter(Math.min(500 * 2 ** Math.min(tries, 10), 5000));
