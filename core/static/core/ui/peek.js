// Shows a row of a list beside it without loading the page anew; rows.js loads this script with the first row chosen.
import { byId } from "./elements.js";
import { reload } from "./panels.js";

const PAUSE_MS = 120;
const peek = byId("peek");
let pause;

function rows() {
  return [...document.querySelectorAll(".lines .row-link")];
}

function chosen(address = location.href) {
  return new URL(address, location.href).searchParams.get("peek");
}

function mark() {
  for (const link of rows()) {
    const row = link.closest("tr");
    if (chosen() && chosen(link.href) === chosen()) row.setAttribute("aria-current", "true");
    else row.removeAttribute("aria-current");
  }
}

function show() {
  const isOpen = Boolean(chosen());
  peek.hidden = !isOpen;
  mark();
  if (!isOpen) return;
  peek.scrollTop = 0;
  // What was shown is another row's, and would stay where the new one is late.
  peek.querySelector("[data-panel]").replaceChildren();
  reload("peek");
}

// Opens the row of an address; `isMove` tells if rows are walked over.
export function open(address, isMove) {
  if (chosen(address) === chosen()) return;
  // Rows that are walked over are one step of the browser's history.
  if (isMove) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  show();
}

function close() {
  const address = new URL(location.href);
  address.searchParams.delete("peek");
  const row = document.querySelector('.lines tr[aria-current="true"] .row-link');
  history.pushState(null, "", address);
  show();
  row?.focus();
}

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  if (!event.target.closest("[data-close]")) return;
  event.preventDefault();
  close();
});

// j and k move the focus from row to row, and with it what is shown.
document.addEventListener("focusin", (event) => {
  if (peek.hidden || !event.target.matches(".lines .row-link")) return;
  clearTimeout(pause);
  const { href } = event.target;
  pause = setTimeout(() => { if (!peek.hidden) open(href, true); }, PAUSE_MS);
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !peek.hidden && !document.querySelector("dialog[open], :popover-open")) close();
});

addEventListener("popstate", show);
document.addEventListener("panel", mark);
mark();
