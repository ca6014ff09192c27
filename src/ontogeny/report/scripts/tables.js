// Tables whose rows can be put in the order of a column, and that keep to the width of the page.

import { find, findAll } from "./core.js";

export function startTables() {
  startScrolling();
  for (const scroll of findAll(".table-scroll")) fitTable(scroll);
  for (const table of findAll("table.sortable")) {
    for (const head of findAll("thead tr:last-child th", table)) {
      find("button", head)?.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of findAll("th[aria-sort]", table)) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        table.classList.add("sorted");
        sortRows(find("tbody", table), head.cellIndex, down ? -1 : 1);
      });
    }
  }
}

const LISTED_CELLS = 120;
const PROSE = 24; // letters of a cell
const NARROW = 520; // pixels

// A table that is wider than its place is marked: its columns then stand closer and the first stays
// in view; on a narrow screen each row of a small one becomes a list of its cells beside their heads,
// also where sentences would fit in columns of a word or two.
function fitTable(scroll) {
  const table = find("table", scroll);
  const heads = findAll("thead tr:last-child th", table).map((head) => head.textContent.trim());
  const over = findAll("thead .spans > *", table).flatMap((head) =>
    Array(head.colSpan).fill(head.textContent.trim()),
  );
  for (const row of findAll("tbody tr, tfoot tr", table)) {
    [...row.cells].forEach((cell, i) => {
      cell.dataset.head = [over[i], heads[i]].filter(Boolean).join(" · ");
    });
  }
  scroll.classList.toggle("small", table.rows.length * heads.length <= LISTED_CELLS);
  const prose = findAll("tbody td + td", table).some((cell) => cell.textContent.length > PROSE);
  let width = -1;
  new ResizeObserver(() => {
    if (scroll.clientWidth === width) return;
    width = scroll.clientWidth;
    scroll.classList.remove("wide");
    const squeezed = prose && width < NARROW;
    scroll.classList.toggle("wide", squeezed || scroll.scrollWidth > width + 1);
    takeFocus(scroll);
  }).observe(scroll);
}

// A place that scrolls can be scrolled by keys too, and has a name.
function takeFocus(place) {
  const scrolls = place.scrollWidth > place.clientWidth + 1 || place.scrollHeight > place.clientHeight + 1;
  if (!scrolls) {
    for (const name of ["tabindex", "role", "aria-label"]) place.removeAttribute(name);
    return;
  }
  const owner = place.closest("figure, details, section");
  const title = owner && find("h3, summary, h2", owner);
  place.tabIndex = 0;
  place.setAttribute("role", "group"); // many have one name, which no landmarks may
  place.setAttribute("aria-label", title ? title.textContent.trim() : "Scrolls");
}

function startScrolling() {
  const watcher = new ResizeObserver((entries) => entries.forEach((entry) => takeFocus(entry.target)));
  for (const place of findAll(".fact-groups dd, .findings .steps, .actions pre")) watcher.observe(place);
}

// Numbers by size, words by alphabet, cells without a value last in both directions.
function sortRows(body, column, sign) {
  const key = (row) => row.cells[column].dataset.sort;
  const blank = (text) => text === "" || text === "nan";
  const rows = [...body.rows].sort((a, b) => {
    const [x, y] = [key(a), key(b)];
    if (blank(x) || blank(y)) return blank(x) - blank(y);
    const difference = Number(x) - Number(y);
    return sign * (Number.isNaN(difference) ? x.localeCompare(y) : difference);
  });
  body.append(...rows);
}
