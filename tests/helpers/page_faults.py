# ruff: noqa: E501
"""What a reader would stumble over in a page, found in a browser: each fault in words."""

FAULTS = r"""() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const seen = (e) => e.checkVisibility({ visibilityProperty: true });
  const found = [];
  const say = (what, of) => found.push(`${what}: ${String(of).trim().slice(0, 90)}`);

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) say("wider than the window", root.scrollWidth);
  const levels = all("h1,h2,h3,h4").map((h) => +h.tagName[1]);
  levels.forEach((level, i) => level - (levels[i - 1] ?? 0) > 1 && say("heading level skipped", i));
  const ids = all("[id]").map((e) => e.id);
  ids.filter((id, i) => ids.indexOf(id) !== i).forEach((id) => say("id used twice", id));
  for (const link of all("a[href^='#']")) {
    const id = decodeURIComponent(link.getAttribute("href").slice(1)).split("?")[0];
    if (id && !id.startsWith("concept=") && !document.getElementById(id)) say("link to nowhere", id);
  }

  for (const plot of all(".plot, svg[role], [role=img], [role=grid]")) {
    const label = document.getElementById(plot.getAttribute("aria-labelledby"))?.textContent;
    if (!(label || plot.getAttribute("aria-label"))) say("picture without a name", plot.outerHTML);
  }
  for (const box of all(".table-scroll, dd, pre, .steps"))
    if (seen(box) && box.scrollWidth > box.clientWidth + 2 && box.tabIndex < 0)
      say("scrolls, takes no focus", box.textContent);
  for (const frame of all(".plot-frame"))
    if (frame.scrollHeight > frame.clientHeight + 2) say("axis hidden by scrolling", frame.closest("figure").id);
  for (const e of all("button, summary, select, input, .rail a, .rows td > a")) {
    const box = e.getBoundingClientRect();
    if (seen(e) && Math.min(box.width, box.height) < 23.9) say("target under 24 px", e.outerHTML);
    if (seen(e) && !(e.textContent.trim() || e.getAttribute("aria-label") || e.labels?.length || e.title))
      say("control without a name", e.outerHTML);
  }
  for (const svg of all("svg.chart, #life svg")) {
    const stops = all("a", svg).filter((a) => a.tabIndex >= 0).length;
    if (stops > 1) say("more than one stop of the tab key", stops);
  }

  for (const figure of all("figure[data-drawn], .chart-figure, #life")) {
    const texts = all("svg text", figure).filter((e) => seen(e) && e.textContent.trim())
      .map((e) => [e.textContent, e.getBoundingClientRect(), e]);
    texts.forEach(([one, a, e], i) => {
      if (a.left < -1 || a.right > innerWidth + 1) say("text cut by the window", one);
      const frame = e.closest(".plot-frame")?.getBoundingClientRect();
      if (frame && (a.left < frame.left - 1 || a.right > frame.right + 1 || a.bottom > frame.bottom + 2))
        say("text cut by its figure", one);
      for (const [other, b] of texts.slice(i + 1))
        if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3 &&
            Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
          say("label over label", `${one} | ${other}`);
      if (/[a-z]+_[a-z]*\b/.test(one) && !/proj|attn|layers/.test(one)) say("name of a variable", one);
    });
    const cells = all(".on-log .axis", figure).find(seen)?.getBoundingClientRect();
    if (cells) for (const e of all(".value", figure).filter(seen))
      if (e.getBoundingClientRect().left < cells.right) say("number over cells", e.textContent);
  }

  for (const heading of all("h1,h2,h3,h4").filter(seen))
    if (/[a-z]-(ica|pca|svd|nmf|sae)\b|[a-z]_[a-z]|^[-+]+$/.test(heading.textContent))
      say("identifier as a heading", heading.textContent);
  for (const line of all(".sentences li, .three li, .lead, .basis, figcaption, h2").filter(seen)) {
    const words = line.textContent.trim();
    if (/^[a-z]/.test(words)) say("starts with a small letter", words);
    if (/\d-\d/.test(words)) say("interval with a hyphen", words);
    if (/\b(NaN|undefined|null|Infinity|nan|inf)\b/.test(words)) say("no number", words);
    if (/(?<![–.,\d])1 (layers|rows|steps|checkpoints|concepts|quantities|texts|runs)\b/.test(words))
      say("plural of one", words);
    if (/ {2}|\s[,.;](\s|$)|\.\./.test(words.replace(/\n\s*/g, " "))) say("broken sentence", words);
  }
  for (const e of all("#now-step, #now-more, .readout, .value, td, dd, .facts"))
    if (/\b(NaN|undefined|Infinity)\b/.test(e.textContent)) say("no number", e.textContent);
  return found;
}"""


def faults(page):
    """Return what is wrong with a page as it stands in its window, each fault once."""
    return sorted(set(page.evaluate(FAULTS)))
