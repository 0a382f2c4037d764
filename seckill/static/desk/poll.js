/**
 * Ask an address again and again: every so often while it answers, less and less often while it does not, and not at
 * all while nobody looks at the page.
 */
const TIMEOUT_MS = 5000;
const BACKOFF = 1.7;
const SLOWEST_MS = 30000;

/** What an answer that is none means: "logged_out", "forbidden", or "failed" for all that may pass. */
class NoAnswer extends Error {}

async function ask(url) {
  const answer = await fetch(url, {
    headers: { Accept: "application/json" }, redirect: "manual", signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (answer.type === "opaqueredirect") throw new NoAnswer("logged_out");
  if (answer.status === 403 || answer.status === 404) throw new NoAnswer("forbidden");
  if (!answer.ok) throw new NoAnswer("failed");
  return answer.json();
}

/**
 * Poll until the page goes. `onAnswer` gets each answer, `onTrouble` a word and the milliseconds until the next try,
 * or null where there is none. Returns a function that asks at once.
 */
export function poll({ url, everyMs, onAnswer, onTrouble }) {
  let timer = null;
  let pauseMs = everyMs;
  let isAsking = false;

  async function turn() {
    clearTimeout(timer);
    if (isAsking || document.visibilityState === "hidden") return;
    isAsking = true;
    try {
      onAnswer(await ask(typeof url === "function" ? url() : url));
      pauseMs = everyMs;
    } catch (error) {
      const word = error instanceof NoAnswer ? error.message : "failed";
      pauseMs = Math.min(pauseMs * BACKOFF, SLOWEST_MS);
      onTrouble(word, word === "failed" ? pauseMs : null);
      if (word !== "failed") return;
    } finally {
      isAsking = false;
    }
    timer = setTimeout(turn, pauseMs);
  }

  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && turn());
  addEventListener("online", turn);
  turn();
  return turn;
}
