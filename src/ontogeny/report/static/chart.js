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

function chartHover(event, svg, placeOf) {
  const row = event.target.closest(".row");
  if (!row) {
    hideTooltip();
    return;
  }
  const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  const data = DATA.rows[row.dataset.row];
  const place = placeOf(point.x);
  const [half, low, high] = data.half;
  const when =
    data.developed &&
    half !== null &&
    `half-way at step ${formatStep(half)}${low !== null && high !== null ? ` (${formatStep(low)}–${formatStep(high)})` : ""}`;
  const settled = data.developed && data.settled !== null && `settled from step ${formatStep(data.settled)}`;
  const p = data.p !== null && `p ${data.p < 1e-4 ? "< 0.0001" : `= ${Number(data.p.toPrecision(2))}`}`;
  if (place < DATA.scales.log.at[0] - 0.04) {
    showTooltip(event, data.label, data.developed ? "developed" : "not told apart from chance and noise", [
      when,
      settled,
      p,
    ]);
    return;
  }
  const i = nearest(
    data.steps.map((step) => DATA.scales.log.at[indexOfStep.get(step)]),
    place,
  );
  const share = values(data.progress)[i];
  const value = Number.isNaN(share) ? "not measured" : `${Math.round(share * 100)}% of the way`;
  const doubt =
    !Number.isNaN(share) &&
    (data.distinct[i] === "0" || !data.developed) &&
    "not told apart from noise or chance";
  showTooltip(event, `Step ${formatStep(data.steps[i])} · ${data.label}`, value, [doubt, when, settled, p]);
}
