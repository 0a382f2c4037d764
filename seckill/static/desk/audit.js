/** The audit of an item: waits for the reconciliation that was asked for, and shows its result when it is there. */
import { poll } from "./poll.js";
import { t } from "./words.js";

const EVERY_MS = 1000;
const GIVE_UP_MS = 90000;

const root = document.getElementById("audit");
const after = Number(root.dataset.after);
const line = root.querySelector("[data-waiting]");

function say(key) {
  line.hidden = false;
  line.textContent = t(key);
  line.classList.toggle("is-stale", key !== "reconciling");
}

if (root.dataset.after !== "") {
  const begun = performance.now();
  say("reconciling");
  poll({
    url: root.dataset.runsUrl,
    everyMs: EVERY_MS,
    onAnswer(runs) {
      const all = Object.values(runs);
      if (all.length && all.every(({ run }) => run > after)) location.replace(location.pathname);
      else if (performance.now() - begun > GIVE_UP_MS) say("reconcile_late");
    },
    onTrouble: (word) => say(word === "failed" ? "reconcile_late" : word),
  });
}
