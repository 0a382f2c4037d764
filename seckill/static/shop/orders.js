/** The reader's orders: how long those that are not paid may wait. */
import { sync } from "./clock.js";
import { countdown, duration } from "./countdown.js";
import { say } from "./dom.js";
import { showOpen } from "./open.js";
import { localize } from "./texts.js";

localize(document);
sync();
for (const node of document.querySelectorAll("[data-until]")) {
  countdown(Date.parse(node.dataset.until), (left) => say(node, duration(left)));
}
showOpen(document.getElementById("open"));
