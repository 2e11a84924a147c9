// Loads a panel of the page anew: when somebody tries again, and as often as the panel says while the page is visible.
export function watchPanels() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-retry]");
    if (!link) return;
    event.preventDefault();
    reload(link.dataset.retry);
  });
  for (const section of document.querySelectorAll("[data-refresh]")) {
    const name = section.querySelector("[data-panel]").dataset.panel;
    setInterval(() => { if (!document.hidden && !section.contains(document.activeElement)) reload(name); },
      Number(section.dataset.refresh) * 1000);
  }
}

// The load of each panel that is under way; a newer one takes its place, since answers may come in another order.
const loads = new Map();

export async function reload(name) {
  const body = document.querySelector(`[data-panel="${CSS.escape(name)}"]`);
  const address = new URL(location.href);
  address.searchParams.set("panel", name);
  loads.get(name)?.abort();
  const load = new AbortController();
  loads.set(name, load);
  body.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { headers: { accept: "text/html" }, signal: load.signal });
    if (!answer.ok) throw new Error(answer.statusText);
    const opened = [...body.querySelectorAll("details[id][open]")].map((one) => one.id);
    body.innerHTML = await answer.text();
    // What somebody opened stays open.
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    body.dispatchEvent(new CustomEvent("panel", { bubbles: true }));
  } catch (error) {
    if (load.signal.aborted) return;
    body.setAttribute("data-stale", "true");
    if (!(error instanceof Error)) throw error;
  } finally {
    if (loads.get(name) === load) body.removeAttribute("aria-busy");
  }
}
