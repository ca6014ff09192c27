// The page around the figures: rail, folds, sortable table, print; then start everything.

function startRail() {
  const menu = document.getElementById("menu");
  const rail = document.getElementById("rail");
  const open = (shown) => {
    rail.classList.toggle("open", shown);
    menu.setAttribute("aria-expanded", String(shown));
  };
  menu.addEventListener("click", () => open(!rail.classList.contains("open")));
  rail.addEventListener("click", (event) => {
    if (event.target.closest("a")) open(false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      open(false);
      hideTooltip();
    }
  });
  const links = new Map(findAll("a", rail).map((link) => [link.hash.slice(1), link]));
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(entry.target.id)?.setAttribute("aria-current", "true");
      }
    },
    { rootMargin: "-30% 0px -65% 0px" },
  );
  for (const section of findAll("main > section")) watcher.observe(section);
}

// The margin notes fold where there is no margin.
function startNotes() {
  const narrow = matchMedia("screen and (max-width: 860px)");
  const fold = () => {
    for (const notes of findAll(".notes details")) notes.open = !narrow.matches;
  };
  narrow.addEventListener("change", fold);
  fold();
}

function startBarHeight() {
  const bar = document.getElementById("bar");
  const set = () => document.documentElement.style.setProperty("--bar", `${bar.offsetHeight}px`);
  new ResizeObserver(set).observe(bar);
  set();
}

function startTables() {
  for (const table of findAll("table.sortable")) {
    findAll("th", table).forEach((head, column) => {
      find("button", head)?.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        for (const other of findAll("th[aria-sort]", table)) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        sortRows(find("tbody", table), column, down ? -1 : 1);
      });
    });
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

// Paper shows everything at once: all figures drawn to its width, all notes open.
function startPrint() {
  addEventListener("beforeprint", () => {
    paper.printing = true;
    for (const notes of findAll(".notes details")) notes.open = true;
    for (const figure of figures.values()) figure.draw();
  });
  addEventListener("afterprint", () => {
    paper.printing = false;
    for (const figure of figures.values()) figure.refresh();
  });
}

startBarHeight();
startNotes();
startFigures();
startSlider();
startLayers();
startChart();
startDownloads();
startRail();
startTables();
startPrint();
startLinks();
document.documentElement.dataset.ready = "true";
