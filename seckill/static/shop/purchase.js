/**
 * One purchase, from the click to its end, whatever happens on the way. Knows nothing of the page.
 *
 * The same ticket is sent again until there is an answer; however often it arrives, it is one purchase.
 * `tell(key)` hears where things stand. Ends: {kind: "confirmed" | "returned", order}, {kind: "refused", reason},
 * {kind: "problem", code, body}.
 */
import { call, Lost } from "./api.js";
import { now } from "./clock.js";
import { backoff, jitter, nap, pause, pauseFor } from "./wait.js";

const PAUSED_MS = 3000;
const BUGS_MAX = 2;
// What a shop says to one who has nothing; told to one whose purchase is in doubt, it is looked up before it is believed.
const FINAL = new Set(["sold_out", "not_enough_left", "limit_reached", "ended", "ticket_expired", "price_changed"]);

/** Send a ticket until its fate is known; `isRepeat` unless it was never sent before. */
export async function buy({ ticket, orderNo, quantity, tell, isRepeat = true }) {
  let isInDoubt = isRepeat;
  let bugs = 0;
  tell("sending");
  for (;;) {
    let answer;
    try {
      // A repeat is answered by the gate itself, never from what a process remembers of the item.
      answer = await call("POST", "/purchases/", { body: { ticket, quantity, attempt: isInDoubt ? 2 : 1 } });
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      isInDoubt = true;
      tell(navigator.onLine ? "no_answer" : "offline");
      await nap(jitter(1000));
      continue;
    }
    if (answer.status === 202 || answer.code === "conflict") {
      const end = await follow({ ticket, orderNo, tell, firstMs: answer.body.poll_after_ms ?? 0 });
      if (end.kind !== "not_reserved") return end;
      tell("again");
    } else if (answer.status === 429 || answer.status === 503) {
      isInDoubt ||= answer.code === "unavailable";
      tell(answer.code === "throttled" ? "queueing" : answer.code);
      await pauseFor(answer);
    } else if (answer.code === "paused" || answer.code === "not_preheated") {
      tell(answer.code);
      await pause(jitter(PAUSED_MS));
    } else if (answer.code === "not_started") {
      tell("early");
      await pause(answer.body.opens_in_ms + Math.random() * 100);
    } else if (answer.status >= 500 && bugs < BUGS_MAX) {
      isInDoubt = true;
      bugs += 1;
      tell("unavailable");
      await pause(jitter(2000));
    } else {
      const isLooked = isInDoubt && (FINAL.has(answer.code) || answer.status >= 500);
      const end = isLooked ? await follow({ ticket, orderNo, tell, firstMs: 0 }) : null;
      if (end !== null && end.kind !== "not_reserved") return end;
      return { kind: "problem", code: answer.code, body: answer.body };
    }
  }
}

/** Poll until there is an end; `not_reserved` is one too. Lasts as long as it must, ever more slowly. */
export async function follow({ ticket, orderNo, tell, firstMs = 0 }) {
  await nap(firstMs);
  for (let tries = 0; ; tries += 1) {
    let answer = null;
    try {
      answer = await call("GET", `/purchases/${orderNo}/`, { ticket });
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      tell(navigator.onLine ? "confirming_slow" : "offline");
    }
    const state = answer?.ok ? answer.body.state : null;
    if (state === "confirmed" || state === "returned") return { kind: state, order: answer.body.order, orderNo };
    if (state === "refused") return { kind: "refused", reason: answer.body.reason };
    if (state === "not_reserved") return { kind: "not_reserved" };
    if (state === "queued") tell(tries < 4 ? "confirming" : "confirming_slow");
    if (state === "unknown") tell("unknown");
    if (answer && (answer.status === 404 || answer.status === 403 || answer.status === 401)) {
      return { kind: "problem", code: answer.code, body: answer.body };
    }
    await (answer?.retryMs ? pauseFor(answer) : nap(backoff(tries)));
  }
}

/** How old a click may be that a reload has cut off and that is sent once more. */
export const isFresh = (purchase) => now() - purchase.at < 120000;
