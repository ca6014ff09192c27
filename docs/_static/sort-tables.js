// Sort a table of the site by a column: click its head, or press it with the keyboard; again turns it.
const order = new Intl.Collator("en", { numeric: true });

function sortBy(table, column, head) {
  const descending = head.getAttribute("aria-sort") === "ascending";
  const rows = [...table.tBodies[0].rows];
  const text = (row) => row.cells[column].querySelector("summary")?.textContent ?? row.cells[column].textContent;
  rows.sort((a, b) => order.compare(text(a), text(b)) * (descending ? -1 : 1));
  table.tBodies[0].append(...rows);
  for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

for (const table of document.querySelectorAll("table.docutils")) {
  if (!table.tHead || table.tBodies[0].rows.length < 3) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.tabIndex = 0;
    head.style.cursor = "pointer";
    head.title = "Sort by this column";
    head.addEventListener("click", () => sortBy(table, column, head));
    head.addEventListener("keydown", (event) => {
      if (event.key === "Enter") sortBy(table, column, head);
    });
  });
}
