// The rows of a new rollout's stages, and its forecast and differences while somebody types. The form works without it.
import { reload } from "../../core/ui/panels.js";

const form = document.getElementById("rollout-form");
const rows = [...form.querySelectorAll("table.stages tbody tr")];
const add = form.querySelector("[data-add]");
const FIELDS = ["weight", "min_duration_minutes", "min_requests", "settle_minutes"];
let timer = 0;

function fields(row) {
  return FIELDS.map((name) => row.querySelector(`input[name$="-${name}"]`));
}

function shownRows() {
  return rows.filter((row) => !row.hidden);
}

function arrange() {
  const shown = shownRows();
  for (const row of shown) row.querySelector("[data-remove]").hidden = shown.length === 1;
  add.hidden = shown.length === rows.length;
}

// The stages after the removed one move up, so that the rows in use are always the first ones.
function remove(row) {
  const later = shownRows().slice(shownRows().indexOf(row));
  later.forEach((one, place) => {
    const next = later[place + 1];
    fields(one).forEach((field, index) => { field.value = next ? fields(next)[index].value : ""; });
  });
  later.at(-1).hidden = true;
  arrange();
  updateSoon();
  add.focus();
}

for (const row of rows) {
  row.hidden = "empty" in row.dataset;
  row.querySelector("[data-remove]").addEventListener("click", () => remove(row));
}

add.addEventListener("click", () => {
  const row = rows.find((one) => one.hidden);
  row.hidden = false;
  arrange();
  fields(row)[0].focus();
});

// A way fills the rows in.
for (const way of document.querySelectorAll("[data-stages]")) {
  way.addEventListener("click", (event) => {
    event.preventDefault();
    const stages = way.dataset.stages.split(",").map((text) => text.split(":"));
    rows.forEach((row, place) => {
      row.hidden = !stages[place];
      fields(row).forEach((field, index) => { field.value = stages[place]?.[index] ?? ""; });
    });
    for (const other of document.querySelectorAll("[data-stages]")) other.toggleAttribute("aria-current", other === way);
    arrange();
    update();
  });
}

function update() {
  const address = new URL(location.href);
  const stages = rows
    .map((row) => fields(row).map((field) => field.value.trim()).join(":")).filter((text) => /[^:]/.test(text));
  const data = new FormData(form);
  address.searchParams.set("stages", stages.join(","));
  address.searchParams.set("target", data.get("target"));
  address.searchParams.set("allocation", data.get("allocation_type"));
  const changed = address.searchParams.get("target") !== new URL(location.href).searchParams.get("target");
  history.replaceState(null, "", address);
  reload("forecast");
  if (changed) reload("diff");
}

function updateSoon() {
  clearTimeout(timer);
  timer = setTimeout(update, 400);
}

form.addEventListener("input", (event) => {
  if (event.target.closest("table.stages") || ["target", "allocation_type"].includes(event.target.name)) {
    updateSoon();
  }
});
form.querySelector("[data-forecast]").hidden = true;
arrange();
