// A click on a row of a list shows it beside the list. The script for that comes with the first click, or at once where
// the address names a row; without scripts a row is a link to the same address.
const FIELDS = "input, select, textarea, [contenteditable], dialog, a, button, summary";

function beside() {
  return import("./peek.js");
}

document.addEventListener("click", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  const link = event.target.closest(".lines tbody tr")?.querySelector(".row-link");
  if (!link || (event.target.closest(FIELDS) && event.target.closest("a") !== link)) return;
  if (!event.target.closest("a") && String(getSelection())) return;
  event.preventDefault();
  link.focus();
  beside().then(({ open }) => open(link.href, false), () => location.assign(link.href));
});

if (new URLSearchParams(location.search).has("peek")) beside();
