// The step slider: its track is the loss curve, its handle the current step.

const PLAY_SECONDS = 8;

function startSlider() {
  const slider = document.getElementById("slider");
  document.getElementById("bar").classList.toggle("still", DATA.steps.length < 2);
  const svg = makeSvg("svg", { "aria-hidden": "true" });
  slider.append(svg);
  slider.setAttribute("aria-valuemin", DATA.steps[0]);
  slider.setAttribute("aria-valuemax", DATA.steps.at(-1));
  const redraw = () => {
    for (const button of findAll("#scale button"))
      button.setAttribute("aria-pressed", String(button.dataset.scale === state.scale));
    drawTrack(svg, slider.clientWidth, slider.clientHeight);
    moveHandle(slider, svg);
  };
  slider.addEventListener("pointerdown", (event) => {
    slider.setPointerCapture(event.pointerId);
    slider.focus({ preventScroll: true });
    slideTo(slider, event);
  });
  slider.addEventListener("pointermove", (event) => {
    if (event.buttons) slideTo(slider, event);
  });
  document.addEventListener("keydown", moveByKey);
  listen((changed) => (changed.has("scale") ? redraw() : moveHandle(slider, svg)));
  addEventListener("resize", redraw);
  for (const button of findAll("#scale button")) {
    button.addEventListener("click", () => change({ scale: button.dataset.scale }));
  }
  startPlay(document.getElementById("play"));
  redraw();
}

function sliderX(place, width) {
  return 10 + place * (width - 20);
}

function slideTo(slider, event) {
  const box = slider.getBoundingClientRect();
  setStep(nearest(DATA.scales[state.scale].at, (event.clientX - box.left - 10) / (box.width - 20)));
}

function moveByKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea"))
    return;
  const onSlider = event.target.id === "slider";
  const moves = { ArrowLeft: -1, ArrowRight: 1 };
  if (onSlider)
    Object.assign(moves, { ArrowDown: -1, ArrowUp: 1, PageDown: -5, PageUp: 5, Home: -1e9, End: 1e9 });
  if (!(event.key in moves)) return;
  event.preventDefault();
  setStep(state.step + moves[event.key]);
}

function drawTrack(svg, width, height) {
  const scale = DATA.scales[state.scale];
  const base = height - 20;
  svg.replaceChildren(
    makeSvg("line", { class: "rail-line", x1: sliderX(0, width), x2: sliderX(1, width), y1: base, y2: base }),
  );
  const labels = tickLabels(scale.ticks, width - 20);
  for (const [place, label] of labels)
    svg.append(makeSvg("text", { x: sliderX(place, width), y: height - 3 }, label));
  for (const place of scale.at)
    svg.append(
      makeSvg("line", {
        class: "mark",
        x1: sliderX(place, width),
        x2: sliderX(place, width),
        y1: base - 2,
        y2: base + 2,
      }),
    );
  for (const step of findingsByStep.keys()) {
    const x = sliderX(scale.at[indexOfStep.get(step)], width);
    svg.append(makeSvg("path", { class: "mark-found", d: `M${x - 3.5} ${base + 6}h7l-3.5 -6z` }));
  }
  if (scale.broken) svg.append(makeSvg("path", { class: "mark", d: breakPath(sliderX(0.045, width), base) }));
  if (DATA.track)
    svg.append(makeSvg("path", { class: "loss", d: trackPath(DATA.track, scale, width, base - 5) }));
  svg.append(
    makeSvg("line", { class: "handle", y1: 0, y2: base }),
    makeSvg("circle", { class: "knob", cy: base, r: 6.5 }),
  );
}

function breakPath(x, y) {
  return `M${x - 3} ${y + 4}l3 -8M${x + 1} ${y + 4}l3 -8`;
}

function trackPath(track, scale, width, height) {
  const known = track.values.filter((v) => v !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  let pen = "M";
  return track.steps
    .map((step, i) => {
      const value = track.values[i];
      if (value === null) {
        pen = "M";
        return "";
      }
      const x = sliderX(scale.at[indexOfStep.get(step)], width);
      const y = 3 + (height - 3) * (high > low ? (high - value) / (high - low) : 0.5);
      const move = `${pen}${x.toFixed(1)} ${y.toFixed(1)}`;
      pen = "L";
      return move;
    })
    .join("");
}

function moveHandle(slider, svg) {
  const x = sliderX(currentPlace(), slider.clientWidth);
  const step = DATA.steps[state.step];
  find(".handle", svg).setAttribute("x1", x);
  find(".handle", svg).setAttribute("x2", x);
  find(".knob", svg).setAttribute("cx", x);
  const more = trackWords(step);
  document.getElementById("now-step").textContent = formatStep(step);
  document.getElementById("now-more").textContent =
    more || `checkpoint ${formatStep(state.step + 1)} of ${formatStep(DATA.steps.length)}`;
  slider.setAttribute("aria-valuenow", step);
  slider.setAttribute("aria-valuetext", [`step ${formatStep(step)}`, more].filter(Boolean).join(", "));
}

function trackWords(step) {
  if (!DATA.track) return "";
  const i = DATA.track.steps.indexOf(step);
  const value = i >= 0 ? DATA.track.values[i] : null;
  return value === null ? "" : `${formatNumber(value)} ${DATA.track.title}`;
}

function startPlay(button) {
  let timer = null;
  const stop = () => {
    clearInterval(timer);
    timer = null;
    button.setAttribute("aria-pressed", "false");
  };
  button.addEventListener("click", () => {
    if (timer) {
      stop();
      return;
    }
    if (state.step === DATA.steps.length - 1) setStep(0);
    button.setAttribute("aria-pressed", "true");
    const pause = Math.max(60, Math.min(400, (PLAY_SECONDS * 1000) / DATA.steps.length));
    timer = setInterval(() => {
      setStep(state.step + 1);
      if (state.step === DATA.steps.length - 1) stop();
    }, pause);
  });
}
