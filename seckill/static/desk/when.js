/** Instants of a sale beside their text in the shop's zone: by the operator's clock, and how long from the server's now. */
import { span, t } from "./words.js";

const TICK_MS = 1000;
const holder = document.querySelector("[data-now]");
const ahead = Date.parse(holder.dataset.now) - Date.now();
const language = document.documentElement.lang || "en";
const own = new Intl.DateTimeFormat(language, {
  month: "short", day: "numeric", weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
});
const inShop = new Intl.DateTimeFormat("en-GB", {
  timeZone: holder.dataset.zone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit",
  minute: "2-digit", second: "2-digit", hourCycle: "h23",
});

/** How far the shop's clock is ahead of UTC at an instant. */
function offset(ms) {
  const part = Object.fromEntries(inShop.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
  return Date.UTC(part.year, part.month - 1, part.day, part.hour, part.minute, part.second) - ms;
}

/** The instant that a field of the form means, which is in the shop's zone; looked at twice for the clock's changes. */
function meant(text) {
  const wall = Date.parse(`${text}Z`);
  if (Number.isNaN(wall)) return NaN;
  return wall - offset(wall - offset(wall));
}

function words(ms) {
  const seconds = (ms - (Date.now() + ahead)) / 1000;
  const far = seconds >= 0 ? t("in_time", { time: span(seconds) }) : t("ago", { time: span(-seconds) });
  return `${t("your_time", { time: own.format(ms) })}, ${far}`;
}

function beside(node) {
  const note = document.createElement("span");
  note.className = "quiet beside";
  node.after(note);
  return note;
}

const shown = [
  ...[...document.querySelectorAll("time.when")].map((node) => [beside(node), () => Date.parse(node.dateTime)]),
  ...[...document.querySelectorAll("input[type=datetime-local]")].map((node) => [beside(node), () => meant(node.value)]),
];

function show() {
  for (const [note, instant] of shown) {
    const ms = instant();
    note.textContent = Number.isNaN(ms) ? "" : ` ${words(ms)}`;
  }
}

setInterval(show, TICK_MS);
document.addEventListener("input", show);
show();
