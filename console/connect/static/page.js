// Looks whether the steps are done until they are: the link of the first request then takes the place of the waiting.
const PAUSE_MS = 1500;
let place = null;

async function look() {
  if (!document.hidden) {
    const answer = await fetch(place.dataset.steps, { headers: { accept: "text/html" } }).catch(() => null);
    // An answer from elsewhere is the page to sign in again.
    if (answer?.redirected) return;
    if (answer?.ok) show(await answer.text());
  }
  again();
}

function again() {
  if (!place.querySelector("[data-done]")) setTimeout(look, PAUSE_MS);
}

// What is the same is left alone: a change is announced, and a link of the steps may have the focus.
function show(text) {
  const found = document.createElement("template");
  found.innerHTML = text;
  if (found.innerHTML.trim() !== place.innerHTML.trim()) place.replaceChildren(found.content);
}

function begin() {
  place = document.querySelector("[data-steps]");
  if (place) again();
}

begin();
// The box may be part of a panel that came late.
document.addEventListener("panel", () => { if (!place) begin(); });
