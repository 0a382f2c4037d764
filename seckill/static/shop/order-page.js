/** The page of one order; also while it is still being written. */
import { sync } from "./clock.js";
import { say } from "./dom.js";
import { OrderBox } from "./order.js";
import { follow } from "./purchase.js";
import { has, localize, t } from "./texts.js";

const root = document.querySelector("[data-number]");
const status = document.getElementById("progress");
const tell = (key) => say(status, t(has(`state_${key}`) ? `state_${key}` : "state_unavailable"));

async function run(number) {
  if (root.dataset.written === "0") {
    const end = await follow({ orderNo: number, ticket: null, tell });
    say(status, "");
    if (end.code === "not_authenticated") return tellEnd("problem_not_authenticated");
    if (end.kind === "refused") return tellEnd(`refused_${end.reason}`, "refused_invalid");
    if (end.kind !== "confirmed" && end.kind !== "returned") return tellEnd(`state_${end.kind}`, "state_not_reserved");
  }
  return new OrderBox(root.querySelector(".order")).run(number);
}

const tellEnd = (key, otherwise) => say(status, t(has(key) ? key : otherwise));

localize(document);
sync();
run(root.dataset.number);
