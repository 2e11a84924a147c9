// Opens the agent's panel beside the page; the panel and its modules are loaded when it is first opened. Without this
// module the button leads to the panel's own page.

const FIELDS = "input, select, textarea, [contenteditable]";
const KEPT_OPEN = "agent.open";
const WIDE = "(min-width: 901px)";

const link = document.querySelector("#agent-link");
const dialog = document.querySelector("#agent-dialog");

class Opener {
  #loaded = null;
  #focused = null;

  // Opens the panel, and writes to it unless `quietly`. A panel that cannot be loaded leaves its own page.
  async open({ quietly = false } = {}) {
    if (!dialog.open) {
      this.#focused = document.activeElement;
      dialog.show();
      link.setAttribute("aria-expanded", "true");
      keep(true);
      if (quietly) this.#focused?.focus();
    }
    this.#loaded ??= this.#load();
    try {
      await this.#loaded;
    } catch {
      location.href = link.href;
      return;
    }
    if (!quietly) dialog.querySelector("#agent-message")?.focus();
  }

  close() {
    dialog.close();
    link.setAttribute("aria-expanded", "false");
    keep(false);
    (document.contains(this.#focused) && this.#focused !== document.body ? this.#focused : link).focus();
  }

  async #load() {
    const { source, style } = dialog.dataset;
    const address = `${source}?${new URLSearchParams({ from: location.pathname + location.search })}`;
    const [answer] = await Promise.all([fetch(address, { credentials: "same-origin" }), loadStyle(style)]);
    if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
    const body = dialog.querySelector("[data-part=body]");
    // What is shown takes no clicks before the modules that answer them are there.
    body.inert = true;
    body.innerHTML = await answer.text();
    await import("./page.js");
    body.inert = false;
  }
}

function loadStyle(href) {
  const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href });
  const loaded = new Promise((resolve, reject) => {
    sheet.addEventListener("load", resolve);
    sheet.addEventListener("error", reject);
  });
  document.head.append(sheet);
  return loaded;
}

// An open panel stays open on the next page, where there is room for both.
function keep(isOpen) {
  try {
    sessionStorage.setItem(KEPT_OPEN, isOpen ? "yes" : "");
  } catch {
    // The storage is forbidden; each page begins with the panel closed.
  }
}

function isKeptOpen() {
  try {
    return sessionStorage.getItem(KEPT_OPEN) === "yes" && matchMedia(WIDE).matches;
  } catch {
    return false;
  }
}

if (link && dialog) {
  const opener = new Opener();
  let previous = "";
  link.setAttribute("aria-haspopup", "dialog");
  link.setAttribute("aria-expanded", "false");
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    opener.open();
  });
  dialog.querySelector("[data-part=close]").addEventListener("click", () => opener.close());
  document.addEventListener("keydown", (event) => {
    const beginsPair = previous === "g";
    previous = event.key;
    if (event.key === "Escape" && dialog.open && !document.querySelector("dialog:modal")) opener.close();
    if (beginsPair || event.key !== "a" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest(FIELDS)) return;
    event.preventDefault();
    opener.open();
  });
  if (isKeptOpen()) opener.open({ quietly: true });
}
