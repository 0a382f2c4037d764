/** The page of one sale: the big clock, what is left of each item, and a panel for each. */
import { call } from "./api.js";
import { onSync, sync } from "./clock.js";
import { countdown, duration } from "./countdown.js";
import { say } from "./dom.js";
import { Panel } from "./panel.js";
import { phaseOf } from "./phase.js";
import { localize, money, t } from "./texts.js";
import { jitter, nap, pauseFor } from "./wait.js";

const root = document.querySelector("[data-sale]");
const announcer = document.getElementById("announcer");
const clockLabel = root.querySelector(".clock-label");
const clock = root.querySelector(".clock");
const LOOK_MS = { scheduled: 10000, preheated: 5000, live: 2500, ended: 20000 };
const SOLD_OUT_LOOK_MS = 15000;
// Seconds before the opening that are said aloud.
const SAID_SECONDS = [60, 10];

let sale = { state: root.dataset.state, opens_at: root.dataset.opens, closes_at: root.dataset.closes, items: [] };
let phase = null;
let stop = () => {};
let wake = () => {};

const isLoggedIn = document.body.dataset.account !== "";
const held = isLoggedIn ? call("GET", "/purchases/").then(({ body }) => body.results ?? [], () => []) : null;
const panels = [...root.querySelectorAll(".panel")].map(
  (panel) => new Panel(panel, { isLoggedIn, held, onNews: () => wake() }),
);

/** Bring the page up to what is known: phase, clock, bars, panels. */
function show() {
  const seen = phaseOf(sale);
  if (seen !== phase) begin(seen);
  for (const panel of panels) {
    const item = sale.items.find(({ id }) => id === panel.item);
    const availability = item?.availability ?? null;
    const card = panel.root.closest(".item");
    bar(card, availability?.level ?? null);
    if (item) say(card.querySelector(".price"), money(item.price));
    panel.show({
      phase,
      isPaused: item?.is_paused ?? panel.root.dataset.paused === "1",
      level: phase === "live" ? availability?.level : null,
      unpaidUntil: availability?.unpaid_until ?? null,
    });
  }
}

function begin(seen) {
  if (phase !== null && seen === "live") say(announcer, t("say_open"));
  phase = seen;
  root.dataset.phase = phase;
  recount();
}

function recount() {
  stop();
  say(clockLabel, t(`clock_${phase}`));
  clock.hidden = phase === "ended";
  if (phase === "ended") return;
  const isBefore = phase !== "live";
  let said = Infinity;
  stop = countdown(Date.parse(isBefore ? sale.opens_at : sale.closes_at), (left) => {
    say(clock, duration(left));
    if (left <= 0 && phaseOf(sale) !== phase) show();
    const due = SAID_SECONDS.find((seconds) => isBefore && left <= seconds * 1000 && left > (seconds - 2) * 1000);
    if (due !== undefined && due !== said) say(announcer, t("say_soon", { seconds: due }));
    said = due ?? said;
  });
}

function bar(card, level) {
  const node = card.querySelector(".left");
  node.hidden = level === null || phase === "ended" || phase === "scheduled";
  if (level === null) return;
  node.dataset.level = level;
  say(node.querySelector(".level"), t(`level_${level}`));
}

/** Everything is taken and paid for: what comes back now is a rare refund. */
const isSoldOut = () =>
  phase === "live" && sale.items.length > 0 &&
  sale.items.every(({ availability }) => availability?.level === "none_left" && availability.unpaid_until === null);

/** Look at the sale again and again; not while nobody looks at the page. */
async function watch() {
  for (;;) {
    const answer = document.visibilityState === "visible" ? await call("GET", `/sales/${root.dataset.sale}/`).catch(() => null) : null;
    if (answer?.ok) {
      const moved = sale.opens_at !== answer.body.opens_at || sale.closes_at !== answer.body.closes_at;
      sale = answer.body;
      if (moved && phase !== null) recount();
    }
    root.dataset.stale = String(!answer?.ok);
    show();
    if (answer && (answer.status === 429 || answer.status === 503)) await pauseFor(answer);
    await Promise.race([nap(jitter(isSoldOut() ? SOLD_OUT_LOOK_MS : LOOK_MS[phase])), new Promise((resolve) => { wake = resolve; })]);
  }
}

localize(document);
onSync(show);
sync().finally(show);
watch();
