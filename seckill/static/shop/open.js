/** What the reader has reserved and not paid, on whatever device he did it. */
import { call } from "./api.js";
import { el } from "./dom.js";
import { clockTime, t } from "./texts.js";
import { backoff, nap } from "./wait.js";

/** List it in `root`, until nothing of it is waited for. */
export async function showOpen(root) {
  if (root === null || document.body.dataset.account === "") return;
  for (let tries = 0; ; tries += 1) {
    const answer = await call("GET", "/purchases/").catch(() => null);
    if (answer?.status === 401) return;
    if (answer?.ok) {
      root.replaceChildren(...answer.body.results.map(line));
      root.closest("section").hidden = answer.body.results.length === 0;
      if (!answer.body.results.some(({ state }) => state !== "confirmed")) return;
    }
    await nap(backoff(tries + 1));
  }
}

function line({ order_no: number, state, order }) {
  if (state === "confirmed" && order) {
    return el("li", {}, el("a", { href: `/orders/${number}/` }, t("open_unpaid", { time: clockTime(order.pay_by) })));
  }
  return el("li", {}, el("a", { href: `/orders/${number}/` }, t(state === "unknown" ? "open_unknown" : "open_queued")));
}
