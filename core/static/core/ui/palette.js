// The palette below the search field: pages, actions, and what has the typed name or id. Without it the field searches.
const PAUSE_MS = 100;
const form = document.querySelector("form.search");
const field = form.querySelector("input[type=search]");
const found = Object.assign(document.createElement("div"), { className: "pop found", hidden: true });
found.setAttribute("role", "group");
found.setAttribute("aria-label", "Found");
form.append(found);
let pause;
let asked;

export async function ask() {
  // An answer that came again would take the focus from the links.
  if (!found.hidden && found.dataset.of === field.value) return;
  asked?.abort();
  asked = new AbortController();
  const address = new URL(form.action);
  for (const [name, value] of new FormData(form)) address.searchParams.set(name, value);
  address.searchParams.set("panel", "palette");
  try {
    const answer = await fetch(address, { signal: asked.signal });
    if (!answer.ok || answer.redirected) return;
    found.innerHTML = await answer.text();
    found.dataset.of = address.searchParams.get("q");
    found.hidden = !found.querySelector("a");
  } catch {
    // A newer question, or no connection: what is shown stays.
  }
}

function close() {
  asked?.abort();
  clearTimeout(pause);
  found.hidden = true;
}

function move(step) {
  const places = [field, ...found.querySelectorAll("a")];
  const next = places.indexOf(document.activeElement) + step;
  places.at(next % places.length).focus();
}

field.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(ask, PAUSE_MS);
});

form.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) {
    event.preventDefault();
    if (found.hidden) ask();
    else move(step);
  }
  if (event.key === "Escape" && !found.hidden) {
    event.stopPropagation();
    close();
    field.focus();
  }
});

form.addEventListener("focusout", (event) => { if (!form.contains(event.relatedTarget)) close(); });

// What was typed while this script came.
if (document.activeElement === field && field.value !== field.defaultValue) ask();
