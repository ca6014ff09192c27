// Tables whose rows can be put in the order of a column.

function startTables() {
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
