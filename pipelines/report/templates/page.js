"use strict";
// Charts: each is drawn into its box, as wide as that is; a mark that is clicked tells its command, where it has one.
for (const figure of document.querySelectorAll("figure[data-chart]")) {
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const told = figure.querySelector("output");
  const box = figure.querySelector(".plot");
  vegaEmbed(box, spec, { renderer: "svg", actions: false }).then(({ view }) => {
    figure.dataset.chart = "drawn";
    view.addEventListener("click", (_, item) => {
      if (item && item.datum && item.datum.command) told.textContent = item.datum.command;
    });
  });
}

// Paper is of another width than the window, and is not laid out yet when charts must be drawn for it.
function draw(width) {
  for (const box of document.querySelectorAll(".plot")) box.style.width = width;
  dispatchEvent(new Event("resize"));
}
addEventListener("beforeprint", () => draw("17cm")); // scaled, by the style, to the paper that there is
addEventListener("afterprint", () => draw(""));

// Tables: a click on a column's name, or Enter on it, sorts by it; once more turns the order around.
const MINUS = /\u2212/g;
const SMALL = /^(under|over) /; // as in "under 0.0001"
const UNITS = { s: 1, min: 60, h: 3600, d: 86400 };
function key(row, column) {
  const cell = row.cells[column];
  const text = cell.textContent.trim();
  if (/^\d{4}-\d\d/.test(text)) return text; // dates sort as they are written
  const found = text.replace(SMALL, "").replace(MINUS, "-").match(/^[+]?(-?[\d,]*\.?\d+(?:e[-+]?\d+)?)(?:\s*(\S+))?/);
  // A name may begin with a digit, as hashes do.
  const name = cell.classList.contains("words") && !(found && found[0] === text && (UNITS[found[2]] || !found[2]));
  return found && !name ? Number(found[1].replace(/,/g, "")) * (UNITS[found[2]] || 1) : text;
}
function order(a, b) {
  if (typeof a === "string" && typeof b === "string") return a.localeCompare(b, "en", { numeric: true });
  if (typeof a === typeof b) return a - b;
  return typeof a === "number" ? -1 : 1;
}
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const body = table.tBodies[0];
      const rows = [...body.rows].map((row) => [key(row, column), row]);
      rows.sort((one, other) => (down ? order(other[0], one[0]) : order(one[0], other[0])));
      body.append(...rows.map((row) => row[1]));
    });
  });
}
