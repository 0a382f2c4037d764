/** The panel of one item: ticket, button, the purchase and what became of it, in words that are true. */
import { now } from "./clock.js";
import { el, enable, isEnabled, say } from "./dom.js";
import { OrderBox } from "./order.js";
import { forget, recall, remember } from "./pending.js";
import { buy, follow, isFresh } from "./purchase.js";
import { clockTime, has, t } from "./texts.js";
import { getTicket } from "./ticket.js";
import { jitter, pause } from "./wait.js";

// A click greys the button out for so long at least.
const COOL_MS = 3000;
const NEEDS_NEW_TICKET = new Set(["ticket_expired", "ticket_invalid", "price_changed"]);

export class Panel {
  /** `onNews()` is called when the sale is worth another look; `held` promises what is open, by item. */
  constructor(root, { isLoggedIn, held, onNews }) {
    Object.assign(this, { root, isLoggedIn, held, onNews, item: Number(root.dataset.item) });
    Object.assign(this, { mode: "idle", told: "", note: "", ticket: null, shown: null, coolUntil: 0, isWaiting: false });
    this.status = root.querySelector(".status");
    this.button = root.querySelector("button.buy");
    this.quantity = root.querySelector("select");
    this.instead = root.querySelector(".instead");
    this.links = root.querySelector(".links");
    this.another = root.querySelector(".another");
    // Who is not logged in has no button, and nothing else of his own.
    if (!isLoggedIn) return;
    this.box = new OrderBox(root.querySelector(".order"), {
      onClosed: (order) => {
        this.note = t(`order_${order.state.toLowerCase()}_advice`);
        this.#again(1500);
      },
      onPaid: () => this.onNews(),
    });
    this.button.addEventListener("click", () => this.#click());
    this.instead.addEventListener("click", () => { this.isWaiting = true; });
    this.another.addEventListener("click", () => this.#start(true));
  }

  /** Take in what the sale's window says: {phase, opensMs, isPaused, level, unpaidUntil}. */
  show(shown) {
    const isFirst = this.shown === null;
    const before = this.shown?.phase;
    this.shown = shown;
    if (this.isLoggedIn && this.mode === "idle" && (isFirst || before !== shown.phase)) this.#begin();
    this.render();
  }

  render() {
    if (this.shown === null) return;
    this.root.dataset.mode = this.mode;
    say(this.status, this.#text());
    if (!this.isLoggedIn) return;
    enable(this.button, this.#canBuy());
    say(this.button, this.mode === "busy" ? t("buying") : t("buy"));
    this.button.parentElement.hidden = this.mode === "order" || this.mode === "barred" || this.shown.phase === "ended";
    this.quantity.disabled = this.mode === "busy";
    this.instead.hidden = !(this.mode === "ticket" && this.isSolving);
    this.another.hidden = !(this.mode === "order" && this.mayBuyMore && this.shown.phase === "live");
  }

  #canBuy() {
    const { phase, isPaused, level } = this.shown;
    const isCool = performance.now() >= this.coolUntil;
    return this.mode === "ready" && isCool && phase === "live" && !isPaused && level !== "none_left";
  }

  #text() {
    const { phase, isPaused, level, unpaidUntil } = this.shown;
    if (this.mode === "busy" || this.mode === "ticket") return this.told;
    if (this.mode === "barred") return this.note;
    if (this.mode === "order") return this.mayBuyMore ? t("state_more") : "";
    if (phase === "ended") return this.note || t("state_ended");
    if (isPaused) return t("state_paused");
    if (level === "none_left") return unpaidUntil ? t("state_taken", { time: clockTime(unpaidUntil) }) : t("state_sold_out");
    if (this.note) return this.note;
    if (phase === "scheduled") return t("state_scheduled");
    if (!this.isLoggedIn) return t("state_login");
    if (this.mode !== "ready") return t("state_ticket");
    return phase === "live" ? t("state_ready") : t("state_ready_early");
  }

  /** Go on with what an earlier visit has begun, else get a ticket. */
  async #begin() {
    const pending = recall(this.item);
    if (pending) await this.#resume(pending);
    else await this.#start(false);
  }

  async #resume(pending) {
    this.#busy();
    const end = await follow({ ...pending, tell: (key) => this.#tell(key) });
    if (end.kind === "not_reserved" && isFresh(pending)) await this.#send(pending);
    else await this.#end(end);
  }

  async #start(isAnother) {
    // In a pool of several items the last ticket says nothing of what was bought with an earlier one. Asked once.
    const { held: listed } = this;
    this.held = null;
    this.mode = this.shown.phase === "scheduled" ? "idle" : "ticket";
    if (this.mode === "idle") return;
    this.box.leave();
    const got = await getTicket({
      item: this.item,
      isAnother,
      tell: (key, values) => this.#tell(key, values),
      wantsToWait: () => this.isWaiting,
    });
    const held = got.kind === "ticket" ? (await listed)?.find(({ item }) => item === this.item) : null;
    if (held) {
      this.#held({ ...held, may_buy_more: true });
    } else if (got.kind === "ticket") {
      this.mode = "ready";
      this.ticket = got;
    } else if (got.kind === "held") {
      this.#held(got.status);
    } else {
      this.#noTicket(got);
    }
    this.render();
  }

  /** What the buyer already has instead of a ticket. */
  #held(status) {
    this.mayBuyMore = status.may_buy_more;
    const state = status.order?.state;
    if (state === "CANCELLED" || state === "EXPIRED") {
      this.#again(2000);
    } else if (status.order) {
      this.#order(status.order_no);
    } else {
      this.#resume({ ticket: null, orderNo: status.order_no, quantity: 1, at: 0 });
    }
  }

  #noTicket({ code, body }) {
    if (code === "not_preheated") {
      this.#again(jitter(5000));
    } else if (code === "ended") {
      this.mode = "idle";
    } else {
      this.mode = "barred";
      this.note = problemText(code, body);
      this.#links(body.orders ?? []);
      if (code === "not_authenticated") this.#loginLink();
      if (body.until) this.#again(Math.max(1000, Date.parse(body.until) - now() + Math.random() * 1000));
      else if (code.startsWith("challenge")) this.#again(jitter(30000));
    }
  }

  #click() {
    if (!isEnabled(this.button) || this.mode !== "ready") return;
    this.coolUntil = performance.now() + COOL_MS;
    const { ticket, orderNo } = this.ticket;
    this.#send({ ticket, orderNo, quantity: Number(this.quantity.value), at: now(), isRepeat: false });
  }

  async #send(purchase) {
    // Whatever is read from there after a reload is a repeat.
    remember(this.item, { ...purchase, isRepeat: true });
    this.#busy();
    const end = await buy({ ...purchase, tell: (key) => this.#tell(key) });
    await this.#end(end, purchase);
  }

  async #end(end, purchase) {
    forget(this.item);
    this.note = "";
    if (end.kind === "confirmed" && !["CANCELLED", "EXPIRED"].includes(end.order?.state)) {
      this.mayBuyMore = false;
      this.#order(end.orderNo);
    } else if (end.kind === "problem") {
      await this.#problem(end, purchase);
    } else {
      this.note = end.kind === "refused" ? refusalText(end.reason) : "";
      await this.#start(false);
    }
    this.onNews();
    this.render();
    setTimeout(() => this.render(), Math.max(0, this.coolUntil - performance.now()) + 50);
  }

  async #problem({ code, body }, purchase) {
    this.note = problemText(code, body);
    if (code === "not_enough_left") this.quantity.value = String(body.units_left);
    if (code === "limit_reached") {
      this.mode = "barred";
      await this.#limit(body);
    } else if (NEEDS_NEW_TICKET.has(code) || purchase === undefined || purchase.ticket === null) {
      await this.#start(false);
    } else {
      this.mode = "ready";
      this.ticket = purchase;
    }
  }

  /** "You have one, pay it": the ticket endpoint knows the order that a purchase was refused for. */
  async #limit(body) {
    if (body.orders?.length) this.#links(body.orders);
    else await this.#start(false);
  }

  #links(orders) {
    const link = ({ number, state }) =>
      el("li", {}, el("a", { href: `/orders/${number}/` }, t(state === "PENDING_PAYMENT" ? "pay_it" : "see_it", { number })));
    this.links.replaceChildren(...orders.map(link));
  }

  #loginLink() {
    const next = encodeURIComponent(location.pathname);
    this.links.replaceChildren(el("li", {}, el("a", { href: `/accounts/login/?next=${next}` }, t("login"))));
  }

  #order(number) {
    const takesFocus = this.root.contains(document.activeElement);
    this.mode = "order";
    this.links.replaceChildren();
    this.render();
    this.box.run(number, { takesFocus });
  }

  #busy() {
    this.mode = "busy";
    this.links.replaceChildren();
    this.render();
  }

  #tell(key, values) {
    this.isSolving = key === "challenge";
    this.told = t(has(`state_${key}`) ? `state_${key}` : "state_unavailable", values);
    this.render();
  }

  /** Ask for a ticket after a while, unless something else happens meanwhile. */
  async #again(ms) {
    if (this.mode !== "barred") this.mode = "between";
    const { mode } = this;
    this.render();
    await pause(ms);
    if (this.mode === mode) await this.#start(false);
  }
}

/** Say why not, and what to do: in the page's own words where it has some, else in the shop's. */
function problemText(code, body) {
  const values = { left: body.units_left, held: body.units_held, until: body.until ? clockTime(body.until) : "" };
  if (code === "ticket_denied" && has(`denied_${body.reason}`)) return t(`denied_${body.reason}`, values);
  return has(`problem_${code}`) ? t(`problem_${code}`, values) : body.title ?? t("state_unavailable");
}

const refusalText = (reason) => t(has(`refused_${reason}`) ? `refused_${reason}` : "refused_invalid");
