// The table of gaps: its column of the current step.

function startCloze() {
  const table = document.getElementById("cloze");
  if (!table) return;
  const cells = findAll("tbody .current", table);
  const show = () => {
    const { steps, tokens, first, share, right, same } = DATA.cloze;
    const t = lastNotAbove(steps, DATA.steps[state.step]);
    for (const label of findAll(".cloze-step", table)) label.textContent = formatStep(steps[t]);
    cells.forEach((cell, gap) => {
      const token = find("bdi", cell);
      token.textContent = tokens[first[t][gap]];
      token.classList.toggle("right", right[t][gap] === 1);
      token.style.setProperty("--a", (0.62 * Math.sqrt(share[t][gap])).toFixed(3));
      find("small", cell).textContent = share[t][gap] < 0.005 ? "<1 %" : `${Math.round(100 * share[t][gap])} %`;
    });
    find(".cloze-same", table).textContent = same[t];
  };
  listen((changed) => {
    if (changed.has("step")) show();
  });
  show();
}
