/** The monitor of one sale: asks every two seconds what it looks like, and says so when it does not learn it. */
import { makeCharts } from "./charts.js";
import { poll } from "./poll.js";
import { showStages } from "./stages.js";
import { count, localize, rate, span, t, wait } from "./words.js";

const EVERY_MS = 2000;
const HISTORY_EVERY_MS = 4000;
const STALE_MS = 6000;
const SAMPLES_LATE_MS = 75000;
const LONG_WAIT_MS = 5000;

const root = document.getElementById("monitor");
const first = JSON.parse(document.getElementById("first-picture").textContent);
let picture = first;
let learnedAt = performance.now();
let offset = Date.parse(first.at) - Date.now();
let trouble = null;

const one = (selector, below = root) => below.querySelector(selector);
const say = (name, text) => root.querySelectorAll(`[data-sum="${name}"]`).forEach((node) => { node.textContent = text; });
const age = (iso) => t("ago", { time: span((Date.now() + offset - Date.parse(iso)) / 1000) });

function drawBar(bar, { sold, queued, left, allocated }) {
  const whole = Math.max(allocated, sold + (queued ?? 0) + (left ?? 0), 1);
  for (const [name, units] of [["sold", sold], ["waiting", queued], ["left", left]]) {
    one(`.${name}`, bar).style.width = `${((units ?? 0) / whole) * 100}%`;
  }
}

function showSums({ sums, buckets }) {
  say("left", count(sums.left));
  say("left-of", t("of_units", { units: count(sums.allocated) }));
  say("sold", count(sums.sold));
  say("queued", count(sums.queued));
  for (const name of ["accepted", "sold_out", "refused"]) {
    say(`${name.replace("_", "-")}-rate`, rate(sums[`${name}_rate`]));
    say(name.replace("_", "-"), t("in_all", { number: count(sums[name]) }));
  }
  say("queue-length", count(sums.queue_length));
  say("oldest", sums.queue_length ? wait(sums.oldest_ms) : "–");
  one('[data-tile="queue"]').classList.toggle("is-bad", sums.oldest_ms > LONG_WAIT_MS);
  drawBar(one('[data-sum="stock-bar"]'), sums);
  showVerdict(buckets, sums.drift);
}

/** The worst verdict of all buckets, and the oldest of the times they were compared. */
function showVerdict(buckets, drift) {
  const checked = buckets.filter((bucket) => bucket.verdict);
  const worst = ["EXCESS", "LEAK", "UNAVAILABLE", "BALANCED"].find((v) => checked.some((b) => b.verdict === v));
  say("verdict", worst ? t(`verdict_${worst}`) : t("verdict_none"));
  const oldest = checked.map((bucket) => bucket.checked_at).sort()[0];
  say("verdict-age", oldest ? `${age(oldest)}${drift ? ` · ${count(drift)}` : ""}` : "");
  const tile = one('[data-tile="verdict"]');
  tile.classList.toggle("is-good", worst === "BALANCED");
  tile.classList.toggle("is-bad", worst === "EXCESS" || worst === "LEAK");
}

function showItem(item) {
  const row = one(`[data-item="${item.id}"]`);
  if (!row) return location.reload();
  const put = (name, text) => { one(`[data-field="${name}"]`, row).textContent = text; };
  put("left", count(item.left));
  put("left-of", t("of_units", { units: count(item.allocated) }));
  put("sold", count(item.sold));
  put("queued", count(item.queued));
  put("accepted_rate", rate(item.accepted_rate));
  put("sold_out_rate", rate(item.sold_out_rate));
  for (const state of ["PENDING_PAYMENT", "PAID", "CANCELLED", "EXPIRED"]) put(state, count(item.orders[state]));
  one('[data-field="paused"]', row).hidden = !item.is_paused;
  row.classList.toggle("is-gone", item.left === 0);
  drawBar(one('[data-field="bar"]', row), item);
}

function showBucket(bucket) {
  const row = one(`[data-bucket="${bucket.id}"]`);
  if (!row) return location.reload();
  const put = (name, text) => { one(`[data-field="${name}"]`, row).textContent = text; };
  put("gate", t(`gate_${bucket.gate}`));
  put("queue", bucket.queue_length === null ? "–" : `${count(bucket.queue_length)} / ${count(bucket.max_queue)}`);
  put("oldest", bucket.queue_length ? wait(bucket.oldest_ms) : "–");
  put("members", count(bucket.members));
  put("verdict", bucket.verdict ? `${t(`verdict_${bucket.verdict}`)}, ${age(bucket.checked_at)}` : t("verdict_none"));
  put("drift", count(bucket.drift));
  row.classList.toggle("is-bad", bucket.gate === "frozen" || bucket.gate === "missing" || Boolean(bucket.drift));
}

function showIncidents(incidents) {
  const panel = one("[data-incidents]");
  panel.classList.toggle("is-bad", incidents.length > 0);
  one("[data-incidents-title]").textContent = incidents.length
    ? t("incidents", { number: count(incidents.length) }) : t("no_incidents");
  one("[data-incident-list]").replaceChildren(...incidents.map((incident) => {
    const line = document.createElement("li");
    const link = document.createElement("a");
    const words = document.createElement("span");
    link.href = incident.url;
    link.textContent = incident.what;
    link.className = `badge ${incident.severity === "CRITICAL" ? "bad" : "warn"}`;
    words.textContent = ` ${incident.bucket} · ${incident.detail} · ${t("times", { number: count(incident.count) })} · ${age(incident.opened_at)}`;
    line.append(link, words);
    return line;
  }));
}

function show(found) {
  picture = found;
  const badge = one("[data-phase]");
  badge.textContent = t(`phase_${found.phase}`);
  badge.className = `badge phase-${found.phase}`;
  showSums(found);
  found.items.forEach(showItem);
  found.buckets.forEach(showBucket);
  showIncidents(found.incidents);
  one("[data-orders-age]").textContent = found.orders_counted_at ? age(found.orders_counted_at) : "–";
  tick();
}

/** What changes by itself: the clock, and how old the numbers are. */
function tick() {
  const now = Date.now() + offset;
  const opens = Date.parse(picture.opens_at) - now;
  const closes = Date.parse(picture.closes_at) - now;
  one("[data-clock]").textContent = opens > 0 ? t("opens_in", { time: span(opens / 1000) })
    : closes > 0 ? t("closes_in", { time: span(closes / 1000) }) : t("closed_since", { time: span(-closes / 1000) });
  const oldMs = performance.now() - learnedAt;
  const line = one("[data-freshness]");
  const isStale = trouble !== null && (trouble.nextAt === null || oldMs > STALE_MS);
  line.className = `freshness ${isStale ? "is-stale" : "is-fresh"}`;
  root.classList.toggle("is-stale", isStale);
  if (trouble !== null && trouble.nextAt === null) line.textContent = t(trouble.word);
  else if (isStale) {
    line.textContent = t("stale", {
      age: span(oldMs / 1000), seconds: Math.max(0, Math.ceil((trouble.nextAt - performance.now()) / 1000)),
    });
  } else line.textContent = oldMs > STALE_MS ? t("waiting") : t("fresh");
  const sampled = picture.sampled_at ? now - Date.parse(picture.sampled_at) : Infinity;
  one("[data-banners]").textContent = picture.items.length && sampled > SAMPLES_LATE_MS ? t("unsampled") : "";
}

poll({
  url: root.dataset.nowUrl,
  everyMs: EVERY_MS,
  onAnswer(found) {
    learnedAt = performance.now();
    offset = Date.parse(found.at) - Date.now();
    trouble = null;
    show(found);
  },
  onTrouble(word, nextMs) {
    trouble = { word, nextAt: nextMs === null ? null : performance.now() + nextMs };
    tick();
  },
});
localize(root);
show(first);
setInterval(tick, 1000);

const draw = makeCharts(one("[data-charts]"));
const chosenItem = one("[data-chart-item]");
const spans = [...root.querySelectorAll('input[name="span"]')];
const kept = localStorage.getItem("monitor-span");
spans.forEach((input) => { if (kept) input.checked = input.value === kept; });
const chosenSpan = () => spans.find((input) => input.checked)?.value ?? "3600";
const askHistory = poll({
  url: () => `${root.dataset.historyUrl}?span=${chosenSpan()}${chosenItem.value ? `&item=${chosenItem.value}` : ""}`,
  everyMs: HISTORY_EVERY_MS,
  onAnswer: draw,
  onTrouble() {},
});
poll({
  url: root.dataset.stagesUrl,
  everyMs: HISTORY_EVERY_MS,
  onAnswer: (found) => showStages(one("[data-stages]"), found),
  onTrouble() {},
});
chosenItem.addEventListener("change", askHistory);
spans.forEach((input) => input.addEventListener("change", () => {
  localStorage.setItem("monitor-span", input.value);
  askHistory();
}));
