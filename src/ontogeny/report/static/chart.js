// The developmental chart: hover, the hairline of the current step, and the layer selector.

function startChart() {
  for (const svg of findAll("svg.chart")) {
    const layout = DATA.charts[svg.classList.contains("chart-wide") ? "wide" : "narrow"];
    const [left, width, low, high] = layout.plot;
    const places = DATA.scales.log.at;
    const xOf = (place) => left + (width * (place - low)) / (high - low);
    const now = find(".now", svg);
    const move = () => {
      const x = xOf(places[state.step]);
      now.setAttribute("x1", x);
      now.setAttribute("x2", x);
    };
    const dim = () => {
      for (const row of findAll(".row", svg))
        row.classList.toggle("dim", !layerShown(DATA.rows[row.dataset.row].group));
    };
    listen((changed) => {
      if (changed.has("step")) move();
      if (changed.has("layers")) dim();
    });
    svg.addEventListener("pointermove", (event) =>
      chartHover(event, svg, (x) => low + ((x - left) / width) * (high - low)),
    );
    svg.addEventListener("pointerleave", hideTooltip);
    move();
  }
}

const UNDECIDED = "not distinguishable from noise or chance";

function chartHover(event, svg, placeOf) {
  const element = event.target.closest(".row");
  if (!element) {
    hideTooltip();
    return;
  }
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const row = DATA.rows[element.dataset.row];
  const place = placeOf(point.x);
  if (place < DATA.scales.log.at[0] - 0.04) {
    showTooltip(event, row.label, row.developed ? "developed" : UNDECIDED, rowFacts(row));
    return;
  }
  const places = row.steps.map((step) => DATA.scales.log.at[indexOfStep.get(step)]);
  const i = nearest(places, place);
  const share = values(row.progress)[i];
  const told = row.developed && row.distinct[i] === "1";
  const value = Number.isNaN(share) ? "not measured" : `${Math.round(share * 100)}% of the way`;
  const doubt = !Number.isNaN(share) && !told && UNDECIDED;
  showTooltip(event, `Step ${formatStep(row.steps[i])} · ${row.label}`, value, [doubt, ...rowFacts(row)]);
}

// When the row reached half of its change and settled, and its p-value, as far as there are any.
function rowFacts(row) {
  const facts = [];
  const [half, low, high] = row.half;
  if (row.developed && half !== null) {
    const interval = low === null || high === null ? "" : ` (${formatStep(low)}–${formatStep(high)})`;
    facts.push(`half-change step ${formatStep(half)}${interval}`);
  }
  if (row.developed && row.settled !== null) facts.push(`settled from step ${formatStep(row.settled)}`);
  if (row.p !== null) facts.push(row.p < 1e-4 ? "p < 0.0001" : `p = ${Number(row.p.toPrecision(2))}`);
  return facts;
}
