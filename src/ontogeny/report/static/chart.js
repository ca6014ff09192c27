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

// The tooltip of a row: left of the cells all that is known of it, over a cell its share at that step.
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
    showTooltip(event, row.label, row.state, row.facts);
    return;
  }
  const places = row.steps.map((step) => DATA.scales.log.at[indexOfStep.get(step)]);
  const i = nearest(places, place);
  const share = values(row.progress)[i];
  const told = row.told && row.distinct[i] === "1";
  const doubt = !Number.isNaN(share) && !told && "no larger than chance and noise would give";
  const head = `Step ${formatStep(row.steps[i])} · ${row.label}`;
  showTooltip(event, head, shareWords(share), [doubt, row.state, ...row.facts]);
}

// How far a row has gone from its first value to its last, or past one of them.
function shareWords(share) {
  if (Number.isNaN(share)) return "not measured";
  const percent = Math.round(share * 100);
  if (percent < 0) return `${-percent} % beyond its first value, in the other direction`;
  if (percent > 100) return `${percent - 100} % beyond its last value`;
  return `${percent} % of the way`;
}
