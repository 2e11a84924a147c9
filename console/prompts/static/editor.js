// Checks a prompt while somebody types, and makes a row for each variable that the text names. The form works without it.
const form = document.getElementById("prompt-form");
const check = document.getElementById("check");
const body = form.querySelector("table.variables tbody");
const total = form.elements["variables-TOTAL_FORMS"];
const PAUSE = 400;
let timer = 0;
let latest = 0;

function rows() {
  return [...body.rows];
}

function nameOf(row) {
  return row.querySelector('input[name$="-name"]');
}

// The first row without a name, or a copy of the last row with the next number.
function freeRow() {
  const free = rows().find((row) => nameOf(row).value === "");
  if (free) return free;
  const index = body.rows.length;
  const row = body.rows[index - 1].cloneNode(true);
  for (const element of row.querySelectorAll("[name], [id], label")) {
    for (const attribute of ["name", "id", "for"]) {
      const value = element.getAttribute(attribute);
      if (value) element.setAttribute(attribute, value.replace(/-\d+-/, `-${index}-`));
    }
    if (element.localName === "label") element.textContent = element.textContent.replace(/\d+$/, String(index + 1));
    if (element.type === "checkbox") element.checked = false;
    if (element.type === "text") element.value = "";
  }
  body.append(row);
  total.value = String(index + 1);
  return row;
}

// A name that is still being typed in the text would leave a row for each of its letters: rows that the script made
// follow the text until somebody changes them.
const made = new Set();

function declareFound() {
  const found = new Set([...check.querySelectorAll("[data-found]")].map((item) => item.dataset.found));
  const texts = [form.elements.system_prompt, ...form.querySelectorAll("textarea[name=message_text]")];
  const text = texts.map((area) => area.value).join("\n");
  for (const row of made) {
    const name = nameOf(row);
    const isUsed = new RegExp(`\\{\\{\\s*${name.value}\\s*\\}\\}`).test(text);
    if (name.value && !isUsed) name.value = "";
  }
  for (const name of found) {
    const row = freeRow();
    nameOf(row).value = name;
    made.add(row);
  }
  return found.size > 0;
}

async function ask() {
  const mine = ++latest;
  const data = new FormData(form);
  data.set("action", "check");
  data.set("fragment", "1");
  const answer = await fetch(location.href, { method: "POST", body: data, headers: { accept: "text/html" } });
  if (!answer.ok || mine !== latest) return;
  check.innerHTML = await answer.text();
  if (declareFound()) await ask();
}

form.addEventListener("input", (event) => {
  const row = event.target.closest("table.variables tr");
  if (row) made.delete(row);
  clearTimeout(timer);
  timer = setTimeout(() => ask().catch(() => {}), PAUSE);
});
