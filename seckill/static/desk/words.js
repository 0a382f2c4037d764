/** Words and numbers of the operator's pages, in the page's language; the words come from the server. */
const holder = document.querySelector("[data-texts]");
const texts = JSON.parse(holder.dataset.texts);
const language = document.documentElement.lang || "en";
const whole = new Intl.NumberFormat(language, { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat(language, { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A text with its {names} filled in. A key that is not there is a bug, and a test looks for it. */
export const t = (key, values = {}) => texts[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);

/** A number, or the word for one that nobody knows. */
export const count = (number) => (number === null || number === undefined ? "–" : whole.format(number));

/** A rate per second: one decimal while it is small. */
export function rate(number) {
  if (number === null || number === undefined) return "–";
  return t("per_second", { number: number > 0 && number < 10 ? fine.format(number) : whole.format(number) });
}

/** A length of time, in the largest units that matter. */
export function span(seconds) {
  const all = Math.max(0, Math.round(seconds));
  const [s, min, h, d] = [
    t("seconds", { number: all % 60 }), t("minutes", { number: Math.floor(all / 60) % 60 }),
    t("hours", { number: Math.floor(all / 3600) % 24 }), t("days", { number: Math.floor(all / 86400) }),
  ];
  if (all < 120) return t("seconds", { number: all });
  if (all < 7200) return all % 60 && all < 600 ? `${min} ${s}` : t("minutes", { number: Math.floor(all / 60) });
  return all < 172800 ? `${t("hours", { number: Math.floor(all / 3600) })} ${min}` : `${d} ${h}`;
}

/** Microseconds as a person reads them. */
export const moment = (us) => (us < 1000 ? `${whole.format(us)} µs` : `${fine.format(us / 1000)} ms`);

/** Milliseconds as a person reads them. */
export function wait(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return `${whole.format(ms)} ms`;
  return ms < 60000 ? `${fine.format(ms / 1000)} s` : span(ms / 1000);
}

const dates = new Intl.DateTimeFormat(language, {
  month: "short", day: "numeric", weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
});
const times = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** Put the instants below a node into the reader's zone; what the shop's own clock says stays in their titles. */
export function localize(root) {
  for (const node of root.querySelectorAll("time[datetime]")) {
    const at = new Date(node.getAttribute("datetime"));
    node.title = node.textContent.trim();
    node.textContent = node.dataset.only === "time" ? times.format(at) : dates.format(at);
  }
}
