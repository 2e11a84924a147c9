// Keys of the review page: the key of an answer's button presses it. Without this module the buttons work alike.
const FIELDS = "input, select, textarea, [contenteditable]";
let previous = "";

document.addEventListener("keydown", (event) => {
  // "g" begins a pair of keys that opens another page.
  const beginsPair = previous === "g";
  previous = event.key;
  if (beginsPair || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.target.closest(FIELDS)) return;
  document.querySelector(`[data-answer="${CSS.escape(event.key)}"]`)?.click();
});

// A second press while the answer is on its way would score the item again.
document.addEventListener("submit", ({ target }) => {
  if (target.id !== "answer") return;
  setTimeout(() => { for (const button of target.querySelectorAll("button")) button.disabled = true; });
});
