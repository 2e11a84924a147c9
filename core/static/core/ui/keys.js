// Keys of every page: Ctrl or ⌘ and K open the palette, "/" searches, "?" lists the keys, "g" and a letter opens a page,
// "j" and "k" walk through rows.
const FIELDS = "input, select, textarea, [contenteditable]";

export function watchKeys() {
  document.querySelector("#search")?.addEventListener("focus", () => import("./palette.js"), { once: true });
  let waitsForPage = false;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k" && ACTIONS["/"]()) {
      event.preventDefault();
      import("./palette.js").then(({ ask }) => ask());
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest(FIELDS)) return;
    const link = waitsForPage && document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    waitsForPage = event.key === "g" && !waitsForPage;
    if (link) link.click();
    else if (ACTIONS[event.key] && !waitsForPage) {
      if (ACTIONS[event.key]()) event.preventDefault();
    }
  });
}

const ACTIONS = {
  "/": () => focus(document.querySelector("#search")),
  "?": showKeys,
  j: () => walk(1),
  k: () => walk(-1),
};

function focus(element) {
  element?.focus();
  return Boolean(element);
}

function key(name) {
  return Object.assign(document.createElement("kbd"), { textContent: name });
}

// The list has a line for each page that a key opens.
export function showKeys() {
  const dialog = document.querySelector("#keys");
  const list = dialog?.querySelector("dl:not([data-ready])");
  for (const link of list ? document.querySelectorAll("[data-key]") : []) {
    const [keys, page] = ["dt", "dd"].map((name) => list.appendChild(document.createElement(name)));
    keys.append(key("g"), " ", key(link.dataset.key));
    page.textContent = link.textContent.trim();
  }
  list?.setAttribute("data-ready", "");
  if (dialog && !dialog.open) dialog.showModal();
  return Boolean(dialog);
}

function walk(step) {
  const links = [...document.querySelectorAll(".row-link")];
  if (!links.length) {
    const link = document.querySelector(step > 0 ? "a[rel=next]" : "a[rel=prev]");
    link?.click();
    return Boolean(link);
  }
  const focused = links.indexOf(document.activeElement);
  // What is shown beside the list is where the walk goes on.
  const place = focused < 0 ? links.findIndex((link) => link.closest("[aria-current=true]")) : focused;
  const next = place < 0 ? (step > 0 ? 0 : links.length - 1) : place + step;
  return focus(links[Math.max(0, Math.min(links.length - 1, next))]);
}
