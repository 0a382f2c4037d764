/** Getting a ticket before the rush, with a challenge solved on the way where the sale has one. */
import { call, Lost } from "./api.js";
import { solve } from "./challenge.js";
import { backoff, jitter, nap, pause, pauseFor } from "./wait.js";

const CHALLENGES_MAX = 3;
// Each change is read aloud to who listens.
const SAID_EVERY_SECONDS = 15;

/**
 * Ask until there is a ticket or a reason why not. `tell(key, values)` hears where things stand; `wantsToWait()` says
 * whether the buyer would rather wait than let his device compute. Returns {kind: "ticket", ticket, orderNo},
 * {kind: "held", status} or {kind: "problem", code, body}.
 */
export async function getTicket({ item, isAnother, tell, wantsToWait }) {
  let proof = "";
  let challenges = 0;
  tell("ticket");
  for (let tries = 0; ; tries += 1) {
    let answer;
    try {
      const body = { ...(isAnother && { another: true }), ...(proof && { proof }) };
      answer = await call("POST", `/items/${item}/ticket/`, { body });
    } catch (error) {
      if (!(error instanceof Lost)) throw error;
      tell(navigator.onLine ? "ticket_slow" : "offline");
      await nap(backoff(tries));
      continue;
    }
    if (answer.ok && answer.body.ticket) {
      return { kind: "ticket", ticket: answer.body.ticket, orderNo: answer.body.order_no };
    }
    if (answer.ok) return { kind: "held", status: answer.body };
    const isAsked = answer.code === "challenge_required" || answer.code === "challenge_failed";
    if (isAsked && challenges < CHALLENGES_MAX) {
      challenges += 1;
      const mustWait = challenges === CHALLENGES_MAX;
      proof = (await prove({ item, tell, wantsToWait: () => mustWait || wantsToWait() })) ?? "";
    } else if (answer.code === "challenge_too_early") {
      await pause(1000);
    } else if (answer.status === 429 || answer.status === 503) {
      tell("ticket_slow");
      await pauseFor(answer);
    } else if (answer.status >= 500) {
      tell("ticket_slow");
      await pause(jitter(3000));
    } else {
      return { kind: "problem", code: answer.code, body: answer.body };
    }
  }
}

/** Compute, or wait if the buyer says so or the device cannot. Null: ask for another challenge. */
async function prove({ item, tell, wantsToWait }) {
  if (!wantsToWait()) {
    tell("challenge");
    const work = await ask(`/items/${item}/challenge/`);
    if (work === null) return null;
    const proof = await Promise.race([solve(work).catch(() => null), asked(wantsToWait)]);
    if (proof !== null) return proof;
  }
  const pass = await ask(`/items/${item}/challenge/?kind=wait`);
  if (pass === null) return null;
  for (let left = pass.wait_seconds + 1; left > 0; left -= SAID_EVERY_SECONDS) {
    tell("challenge_wait", { seconds: left });
    await pause(1000 * Math.min(left, SAID_EVERY_SECONDS));
  }
  return pass.proof;
}

async function asked(wantsToWait) {
  while (!wantsToWait()) await pause(100);
  return null;
}

async function ask(path) {
  const answer = await call("GET", path).catch(() => null);
  if (answer?.ok) return answer.body;
  await (answer ? pauseFor(answer) : nap(1000));
  return null;
}
