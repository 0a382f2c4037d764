/** The words of the page, in its language: handed over by the server, so that no module has any of its own. */
const texts = JSON.parse(document.getElementById("texts").dataset.texts);

/** Return a text with its {names} filled in. A key that is not there is a bug, and a test looks for it. */
export function t(key, values = {}) {
  return texts[key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

/** Tell whether there is a text of this key. */
export const has = (key) => key in texts;

export const language = document.documentElement.lang;
const sign = document.body.dataset.currency;
const amounts = new Intl.NumberFormat(language, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const times = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const dates = new Intl.DateTimeFormat(language, {
  month: "short", day: "numeric", weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23",
});

export const money = (amount) => sign + amounts.format(Number(amount));

/** Hours and minutes of an instant, in the reader's own zone. */
export const clockTime = (iso) => times.format(new Date(iso));

/** Put all instants below a node into the reader's zone. */
export function localize(root) {
  for (const node of root.querySelectorAll("time[datetime]")) {
    const at = new Date(node.getAttribute("datetime"));
    node.textContent = node.dataset.only === "time" ? times.format(at) : dates.format(at);
    node.title = at.toLocaleString(language, { timeZoneName: "long" });
  }
}
