/** Searches off the page's own thread. */
import { search } from "./challenge.js";

onmessage = ({ data }) => {
  const tries = search(data);
  let step = tries.next();
  while (!step.done) step = tries.next();
  postMessage(step.value);
};
