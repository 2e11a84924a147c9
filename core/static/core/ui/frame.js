// The frame of every page: keys, the scope form, time zones, retries of panels, plots, and copy buttons. Pages work without it.
import { watchPanels } from "./panels.js";
import { showKeys, watchKeys } from "./keys.js";
import { watchPlots } from "./plot.js";
import { watchTables } from "./sort.js";

for (const form of document.querySelectorAll("form[data-submit-on-change]")) {
  form.addEventListener("change", () => form.requestSubmit());
}

// The browser's own zone is offered beside UTC.
const zones = document.querySelector("select[name=tz]");
const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zones && own && ![...zones.options].some((option) => option.text === own)) {
  zones.append(new Option(own));
}

// Fields of a choice that is not taken are not shown. Somebody may have chosen before this script came.
function disclose(field) {
  const control = field.closest("form").elements[field.dataset.shownWhen];
  const value = control.type === "checkbox" ? (control.checked ? "True" : "False") : control.value;
  const values = field.dataset.values.split("|");
  const isShown = values.includes(value) || (value && values.includes("*")) || field.querySelector(".errorlist");
  field.toggleAttribute("data-off", !isShown);
}

for (const field of document.querySelectorAll("[data-shown-when]")) disclose(field);
document.addEventListener("change", ({ target }) => {
  target.form?.querySelectorAll(`[data-shown-when="${CSS.escape(target.name)}"]`).forEach(disclose);
});

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

// A menu closes by a click elsewhere and by Esc.
const openMenus = () => [...document.querySelectorAll("details.menu[open]")];

document.addEventListener("click", ({ target }) => {
  for (const menu of openMenus()) if (!menu.contains(target)) menu.open = false;
  if (target.closest("[data-fold]")) fold();
  if (target.closest("[data-scheme-toggle]")) switchScheme();
  if (target.closest("[data-keys]")) showKeys();
});

document.addEventListener("keydown", (event) => {
  const [menu] = event.key === "Escape" ? openMenus() : [];
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
  event.stopImmediatePropagation();
});

// Pointing at a field of the filters shows its values; a press does not hide them again.
const facetOf = (event) => event.target.closest(".filter-pop > .facet > summary, .filter-pop > .panel-body > .facet > summary")?.parentElement;

document.addEventListener("pointerover", (event) => {
  // Folded to icons, the navigation says its words.
  const page = event.target.closest("#navigation .nav a");
  if (page) page.title = page.offsetWidth < 60 ? page.textContent.trim() : "";
  // Filters that a choice has opened again give way to the list.
  if (event.target.closest("main table")) document.querySelector(".filter-menu[open]:has(:target)")?.removeAttribute("open");
  const facet = event.pointerType === "mouse" && facetOf(event);
  if (facet) facet.open = true;
});
document.addEventListener("click", (event) => { if (event.detail && facetOf(event)?.open) event.preventDefault(); });

// What a person chose is a cookie, so that the next page comes as it is to be.
function keep(name, value) {
  document.cookie = `${name}=${value}; path=/; max-age=31536000; samesite=lax`;
}

function fold() {
  const app = document.querySelector(".app");
  app.dataset.side = app.dataset.side === "rail" ? "" : "rail";
  keep("side", app.dataset.side);
}

function switchScheme() {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  root.dataset.scheme = (root.dataset.scheme ?? system) === "dark" ? "light" : "dark";
  keep("scheme", root.dataset.scheme);
}

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
watchTables();
