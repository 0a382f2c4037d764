/** Purchases whose end is not known yet, kept on the device: they survive a reload, a crash, an empty battery. */
const account = document.body.dataset.account;
const name = (item) => `shop.pending.${account}.${item}`;

/** Keep {ticket, orderNo, quantity, at}. A browser that keeps nothing still has GET /purchases/. */
export function remember(item, purchase) {
  try {
    localStorage.setItem(name(item), JSON.stringify(purchase));
  } catch { /* no room, or forbidden */ }
}

export function recall(item) {
  try {
    return JSON.parse(localStorage.getItem(name(item)));
  } catch {
    return null;
  }
}

export function forget(item) {
  try {
    localStorage.removeItem(name(item));
  } catch { /* forbidden */ }
}
