// Loads a panel of the page anew: when it came late or its store was away, when somebody tries again, and as often as the
// panel says while the page is visible.

// The pauses in seconds before the tries of a panel that did not come, each of which the server gives two seconds.
const PAUSES = [1, 2, 3, 5];

export function watchPanels() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-retry]");
    if (!link) return;
    event.preventDefault();
    reload(link.dataset.retry);
  });
  for (const body of document.querySelectorAll("[data-panel]")) {
    if (body.querySelector("[data-again]")) later(body.dataset.panel, 0);
  }
  for (const section of document.querySelectorAll("[data-refresh]")) {
    const name = section.querySelector("[data-panel]").dataset.panel;
    setInterval(() => { if (!document.hidden && !section.contains(document.activeElement)) reload(name); },
      Number(section.dataset.refresh) * 1000);
  }
}

// The load of each panel that is under way or will be; a newer one takes its place, since answers may come in another order.
const loads = new Map();

function begin(name) {
  const load = new AbortController();
  loads.get(name)?.abort();
  loads.set(name, load);
  return load.signal;
}

function later(name, tries) {
  const signal = begin(name);
  setTimeout(() => { if (!signal.aborted) reload(name, tries + 1); }, PAUSES[tries] * 1000);
}

// `tries` counts those made by themselves since somebody, or the clock, asked for the panel.
export async function reload(name, tries = 0) {
  const body = document.querySelector(`[data-panel="${CSS.escape(name)}"]`);
  const address = new URL(location.href);
  address.searchParams.set("panel", name);
  const signal = begin(name);
  body.setAttribute("aria-busy", "true");
  let content;
  try {
    content = await fetched(address, signal);
  } catch {
    if (signal.aborted) return;
  }
  body.removeAttribute("aria-busy");
  if (content) show(body, content, name, tries);
  else if (tries < PAUSES.length) later(name, tries);
  else giveUp(body);
}

async function fetched(address, signal) {
  const answer = await fetch(address, { headers: { accept: "text/html" }, signal });
  // A session that is over leads to the page of the login.
  if (!answer.ok || answer.redirected) throw new Error(answer.statusText);
  const template = document.createElement("template");
  template.innerHTML = await answer.text();
  return template.content;
}

function show(body, content, name, tries) {
  const isMissing = content.querySelector("[data-again]");
  const goesOn = isMissing && tries < PAUSES.length;
  // Figures that are there stay until newer ones come or the tries are used up.
  if (!goesOn || body.querySelector("[data-again]") || !body.childElementCount) {
    const opened = [...body.querySelectorAll("details[id][open]")].map((one) => one.id);
    body.replaceChildren(content);
    // What somebody opened stays open.
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    body.dispatchEvent(new CustomEvent("panel", { bubbles: true }));
  }
  if (goesOn) later(name, tries);
  else giveUp(body);
}

// Says of a panel that is still late that it did not come.
function giveUp(body) {
  const late = body.querySelector(".late");
  if (!late) return;
  late.className = "problem";
  late.role = "alert";
  late.firstElementChild.textContent = "Not available now: the answer took too long.";
}
