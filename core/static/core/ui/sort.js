// Sorts a table that is whole by any of its numbers. Lists of several pages are sorted by the server, through links.
const UNITS = { ms: 1, s: 1e3, min: 6e4, h: 36e5, days: 864e5, k: 1e3, M: 1e6, B: 1e9, KB: 1e3, MB: 1e6, GB: 1e9, TB: 1e12, times: 100 };

export function watchTables() {
  enhance(document);
  document.addEventListener("panel", (event) => enhance(event.target));
}

function enhance(root) {
  for (const table of root.querySelectorAll("main table:is(.rows, .lines)")) {
    const isPaged = table.parentElement.parentElement.querySelector("a[rel=next], a[rel=prev]");
    const heads = isPaged || table.tBodies[0].rows.length < 2 ? [] : table.tHead.querySelectorAll("th.number:not(:has(*))");
    for (const head of heads) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: head.textContent });
      button.addEventListener("click", () => sort(table, head));
      head.replaceChildren(button);
    }
  }
}

// Returns the number that a cell shows: `1 min 5 s`, `$0.002`, `12.5 k`. What shows none is the smallest.
function amount(cell) {
  const parts = [...cell.textContent.replaceAll(",", "").replace("\u2212", "-").matchAll(/(-?\d[\d.]*) ?([A-Za-z]*)/g)];
  const found = parts.filter(([, , unit], place) => !place || unit in UNITS);
  return found.length ? found.reduce((sum, [, digits, unit]) => sum + Number(digits) * (UNITS[unit] ?? 1), 0) : -Infinity;
}

function sort(table, head) {
  const order = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
  for (const other of table.tHead.querySelectorAll("[aria-sort]")) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const valued = [...table.tBodies[0].rows].map((row) => [amount(row.cells[head.cellIndex]), row]);
  valued.sort(([first], [second]) => sign * (first - second || 0));
  table.tBodies[0].append(...valued.map(([, row]) => row));
}
