/** An order until it is closed: what to pay and until when, and the buttons to pay or cancel. */
import { call, Lost } from "./api.js";
import { now } from "./clock.js";
import { countdown, duration } from "./countdown.js";
import { el, enable, isEnabled, say } from "./dom.js";
import { clockTime, localize, money, t } from "./texts.js";
import { backoff, jitter, nap, pauseFor } from "./wait.js";

const WARN_MS = 180000;
const QUICK_POLLS = 20;
const SLOW_POLL_MS = 15000;

export class OrderBox {
  /** Shows an order in `root`. `onClosed(order)` hears when it was cancelled or not paid, `onPaid` when it was paid. */
  constructor(root, { onClosed = () => {}, onPaid = () => {} } = {}) {
    Object.assign(this, { root, onClosed, onPaid, order: null, kind: null, turn: 0, stop: () => {} });
    this.status = el("p", { class: "status", role: "status" });
    this.title = el("h3", { tabindex: "-1" });
    this.facts = el("p", { class: "facts" });
    this.timer = el("strong", { role: "timer", class: "timer" });
    this.payBy = el("p", { class: "pay-by" });
    this.pay = el("button", { type: "button", class: "button buy", "data-act": "pay" }, t("pay"));
    this.cancel = el("button", { type: "button", class: "button quiet", "data-act": "cancel" }, t("cancel"));
    this.link = el("a", { class: "more" }, t("to_order"));
    this.buttons = el("div", { class: "buttons" }, this.pay, this.cancel);
    root.replaceChildren(this.title, this.facts, this.payBy, this.status, this.buttons, this.link);
    this.pay.addEventListener("click", () => isEnabled(this.pay) && this.#act("pay", "pay_going"));
    this.cancel.addEventListener("click", () => isEnabled(this.cancel) && this.#ask());
  }

  /** Show a number until its order is closed. `takesFocus`: the button that was clicked is gone, reading goes on here. */
  async run(number, { takesFocus = false } = {}) {
    this.leave();
    const { turn } = this;
    Object.assign(this, { number, takesFocus });
    this.root.hidden = false;
    this.link.href = `/orders/${number}/`;
    this.link.hidden = location.pathname === `/orders/${number}/`;
    for (let tries = 0; ; tries += 1) {
      await this.refresh();
      if (turn !== this.turn || (this.order && this.order.state !== "PENDING_PAYMENT")) return;
      await nap(this.#pollMs(tries));
      if (turn !== this.turn) return;
    }
  }

  /** Show nothing any more, and ask for nothing: another order's turn may come. */
  leave() {
    this.turn += 1;
    this.stop();
    this.root.hidden = true;
    Object.assign(this, { order: null, kind: null });
  }

  #focus() {
    const isHere = this.root.contains(document.activeElement);
    if (this.takesFocus || (isHere && document.activeElement.closest("[hidden]"))) this.title.focus();
    this.takesFocus = false;
  }

  async refresh() {
    const { turn } = this;
    const answer = await call("GET", `/orders/${this.number}/`).catch(() => null);
    if (turn !== this.turn) return;
    if (answer?.ok) this.#show(answer.body);
    else if (answer?.status === 401) say(this.status, t("state_login"));
  }

  #pollMs(tries) {
    const usual = tries < QUICK_POLLS ? backoff(tries) : jitter(SLOW_POLL_MS);
    const left = this.order ? Date.parse(this.order.pay_by) - now() : Infinity;
    return left > 0 ? Math.min(usual, left + 500) : Math.min(usual, 2000);
  }

  #show(order) {
    const kind = kindOf(order);
    const isNew = this.kind !== kind;
    Object.assign(this, { order, kind });
    if (!isNew) return;
    this.stop();
    const isOpen = order.state === "PENDING_PAYMENT";
    this.root.dataset.state = order.state;
    say(this.title, t(`order_${kind}`));
    say(this.facts, t("order_facts", { item: order.item, variant: order.variant, quantity: order.quantity, amount: money(order.amount) }));
    this.buttons.hidden = !isOpen;
    this.payBy.hidden = !isOpen;
    say(this.status, isOpen ? waitingText(this.number) : t(`order_${kind}_advice`));
    enable(this.pay, isOpen);
    enable(this.cancel, isOpen);
    if (isOpen) this.#count(Date.parse(order.pay_by));
    if (this.takesFocus || !isOpen) this.#focus();
    if (kind === "paid") this.onPaid(order);
    if (order.state === "CANCELLED" || order.state === "EXPIRED") this.onClosed(order);
  }

  #count(untilMs) {
    const [before, after] = t("pay_within", { timer: "\n", time: clockTime(new Date(untilMs)) }).split("\n");
    this.payBy.replaceChildren(before, this.timer, after);
    let told = "";
    this.stop = countdown(untilMs, (left) => {
      say(this.timer, duration(left));
      const stage = left <= 0 ? "over" : left <= WARN_MS ? "warning" : "";
      if (stage === told) return;
      told = stage;
      this.payBy.dataset.stage = stage;
      if (stage === "warning") say(this.status, t("pay_warning", { minutes: Math.ceil(left / 60000) }));
      if (stage === "over") this.#over();
    });
  }

  #over() {
    enable(this.pay, false);
    enable(this.cancel, false);
    say(this.status, t("pay_over"));
  }

  /** Ask before what cannot be undone. */
  #ask() {
    const yes = el("button", { value: "yes", class: "button" }, t("cancel_yes"));
    const no = el("button", { value: "", class: "button quiet" }, t("cancel_no"));
    const form = el("form", { method: "dialog", class: "buttons" }, no, yes);
    const question = el("p", { id: "cancel-question" }, t("cancel_question"));
    const dialog = el("dialog", { "aria-labelledby": "cancel-question" }, question, form);
    document.body.append(dialog);
    dialog.addEventListener("close", () => {
      dialog.remove();
      if (dialog.returnValue === "yes") this.#act("cancel", "cancelling");
    });
    dialog.showModal();
  }

  /** Pay or cancel: a lost answer is asked for again, it is the same payment, or the same cancelling. */
  async #act(what, doing) {
    enable(this.pay, false);
    enable(this.cancel, false);
    say(this.status, t(doing));
    const answer = await this.#post(`/orders/${this.number}/${what}/`);
    if (answer.ok && what === "pay") {
      begun(this.number);
      location.assign(answer.body.pay_url);
      return;
    }
    if (answer.ok) this.#show(answer.body);
    else say(this.status, answer.body.title ?? t("state_unavailable"));
    if (!answer.ok) await this.refresh();
    const isInTime = this.order !== null && now() < Date.parse(this.order.pay_by);
    enable(this.pay, isInTime);
    enable(this.cancel, isInTime);
  }

  async #post(path) {
    for (;;) {
      const answer = await call("POST", path, { body: {}, timeoutMs: 10000 }).catch((error) => {
        if (error instanceof Lost) return null;
        throw error;
      });
      if (answer !== null && answer.status !== 503 && answer.status !== 429) return answer;
      say(this.status, t(answer === null ? "state_no_answer" : "state_provider_unavailable"));
      await (answer === null ? nap(jitter(1000)) : pauseFor(answer));
    }
  }
}

/** How the texts name an order's state; one that was paid and given back wholly is neither paid nor cancelled. */
const kindOf = ({ state, closed_at }) => (state === "PAID" && closed_at ? "refunded" : state.toLowerCase());

const payingName = (number) => `shop.paying.${number}`;

/** Note that the reader has gone to pay: when he is back, the money may be quicker than the news of it, or slower. */
function begun(number) {
  try {
    sessionStorage.setItem(payingName(number), "1");
  } catch { /* forbidden */ }
}

function waitingText(number) {
  try {
    return sessionStorage.getItem(payingName(number)) ? t("pay_waiting") : "";
  } catch {
    return "";
  }
}

/** The page went to the payment provider and came back out of the cache: its buttons live again. */
addEventListener("pageshow", ({ persisted }) => {
  if (!persisted) return;
  document.querySelectorAll("[data-act]").forEach((button) => enable(button, true));
  localize(document);
});
