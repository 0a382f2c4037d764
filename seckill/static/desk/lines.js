/** Further lines of a form: a copy of the empty one, numbered as Django counts them. */
for (const part of document.querySelectorAll(".lines")) {
  const total = part.querySelector(`[name="${part.dataset.prefix}-TOTAL_FORMS"]`);
  const button = part.querySelector("[data-add]");
  button.hidden = false;
  button.addEventListener("click", () => {
    const number = Number(total.value);
    const body = part.querySelector("tbody");
    const html = part.querySelector("template").innerHTML.replaceAll("__prefix__", String(number));
    body.insertAdjacentHTML("beforeend", html);
    const shown = body.lastElementChild.querySelector("[data-number]");
    if (shown) shown.textContent = String(number + 1);
    total.value = String(number + 1);
    body.lastElementChild.querySelector("input").focus();
  });
}
