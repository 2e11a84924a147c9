// The frame of every page: keys, the scope form, time zones, retries of panels, plots, and copy buttons. Pages work without it.
import { watchPanels } from "./panels.js";
import { watchKeys } from "./keys.js";
import { watchPlots } from "./plot.js";

for (const form of document.querySelectorAll("form[data-submit-on-change]")) {
  form.addEventListener("change", () => form.requestSubmit());
  form.querySelector("[data-without-script]")?.setAttribute("hidden", "");
}

// The browser's own zone is offered beside UTC.
const zones = document.querySelector("select[name=tz]");
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zones && own && ![...zones.options].some((option) => option.text === own)) {
  zones.append(new Option(own));
}

// Empty fields of a filter would only make the address longer; chosen columns are one parameter.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.matches("[data-sparse]")) {
    for (const field of form.elements) {
      if (field.name && field.value === "") field.disabled = true;
    }
  }
  if (form.matches("[data-columns]")) {
    const boxes = [...form.querySelectorAll("input[type=checkbox]")];
    const columns = Object.assign(document.createElement("input"), { type: "hidden", name: "columns" });
    columns.value = boxes.filter((box) => box.checked).map((box) => box.value).join(",");
    for (const box of boxes) box.disabled = true;
    form.append(columns);
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const said = await copied(document.querySelector(button.dataset.copy));
  if (button.hasAttribute("data-said")) return;
  const label = [...button.childNodes];
  button.setAttribute("data-said", "");
  button.replaceChildren(said);
  setTimeout(() => {
    button.removeAttribute("data-said");
    button.replaceChildren(...label);
  }, 1500);
});

// Scripts have a clipboard over https and on this machine alone; elsewhere the text is marked for the reader to copy.
async function copied(source) {
  if (!navigator.clipboard) {
    getSelection().selectAllChildren(source);
    return "Marked: press Ctrl+C";
  }
  await navigator.clipboard.writeText(source.textContent);
  return "Copied";
}

watchKeys();
watchPanels();
watchPlots();
