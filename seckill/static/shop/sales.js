/** The front page: clocks of the sales by the server's time, and what of the reader's is still open. */
import { onSync, sync } from "./clock.js";
import { countdown, duration } from "./countdown.js";
import { say } from "./dom.js";
import { showOpen } from "./open.js";
import { phaseOf } from "./phase.js";
import { localize, t } from "./texts.js";

function run(card) {
  const sale = { state: card.dataset.state, opens_at: card.dataset.opens, closes_at: card.dataset.closes };
  let stop = () => {};
  const show = () => {
    stop();
    const phase = phaseOf(sale);
    card.dataset.phase = phase;
    say(card.querySelector(".clock-label"), t(`clock_${phase}`));
    card.querySelector(".clock").hidden = phase === "ended";
    if (phase === "ended") return;
    const until = Date.parse(phase === "live" ? sale.closes_at : sale.opens_at);
    stop = countdown(until, (left) => {
      say(card.querySelector(".clock"), duration(left));
      if (left <= 0 && phaseOf(sale) !== phase) show();
    });
  };
  show();
  onSync(show);
}

localize(document);
document.querySelectorAll("[data-state]").forEach(run);
sync();
showOpen(document.getElementById("open"));
