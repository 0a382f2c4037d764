/** Small help with nodes. Text is only ever text: nothing here makes HTML of it. */

/** Make an element: el("a", {href: "/", class: "button"}, "text", child). */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null));
  return node;
}

/** Set a text only where it differs, so that a screen reader is not told the same twice. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Switch a button off without taking the keyboard's focus away. */
export function enable(button, isEnabled) {
  button.setAttribute("aria-disabled", String(!isEnabled));
}

export const isEnabled = (button) => button.getAttribute("aria-disabled") !== "true";
