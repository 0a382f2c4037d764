/** Where a sale is, by the server's clock. */
import { now } from "./clock.js";

/** Return scheduled (no tickets yet), preheated, live or ended. */
export function phaseOf({ state, opens_at, closes_at }) {
  if (state === "scheduled" || state === "ended") return state;
  if (now() < Date.parse(opens_at)) return "preheated";
  return now() < Date.parse(closes_at) ? "live" : "ended";
}
