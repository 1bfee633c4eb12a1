// The charts of one benchmark: what is shown, what is said below it, and when it is drawn again.

const drawings = new Set(); // every chart on the page, as a function that draws it again

function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "text") made.textContent = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function figure(title) {
  const canvas = make("canvas", { role: "img", "aria-label": title });
  const note = make("p", { class: "note" });
  const heading = make("figcaption", { text: title });
  return { canvas, note, heading, whole: make("figure", {}, heading, make("div", { class: "plot" }, canvas), note) };
}

async function buildCharts(holder, number) {
  let block;
  try {
    block = await samplesOf(number);
  } catch (error) {
    holder.append(make("p", { class: "quiet", text: "This browser cannot unpack the samples, so there are no charts; the tables are complete. " + error }));
    return;
  }
  holder.dataset.samples = block.series.reduce((sum, series) => sum + series.count, 0);
  const choice = make("select", { "aria-label": "Metric" },
    ...block.series.map((series, index) => make("option", { value: index, text: series.name })));
  const log = make("input", { type: "checkbox" });
  const dots = figure("Every sample, by launch");
  const course = figure("Over the run of each launch");
  holder.append(
    make("div", { class: "chart-tools" }, make("label", {}, "Metric ", choice), make("label", {}, log, " logarithmic"), legend(block)),
    make("div", { class: "pair" }, dots.whole, course.whole));
  const chosen = () => block.series[Number(choice.value)];
  const redraw = () => {
    showDistribution(dots, block, chosen(), log.checked);
    showOverTime(course, block, chosen(), { log: log.checked });
  };
  choice.onchange = log.onchange = redraw;
  keepDrawn(holder, redraw);
  addBeside(holder, block);
}

function legend(block) {
  const item = (kind, text) => make("span", { class: "key" }, make("i", { class: kind }), text);
  const dots = block.controls === undefined ? [item("dot", "measured")] : [item("dot", "control"), item("dot treatment", "treatment")];
  const summed = block.series.some((series) => series.value !== null) // not where two sides are compared
    ? [item("tick", "a launch's number"), item("dash", "median"), item("band", "95 % interval")] : [];
  return make("span", { class: "legend" }, ...dots, item("ring", "warm-up"), ...summed);
}

// What was sampled beside the program: memory, processor, devices.
function addBeside(holder, block) {
  const sampled = block.series.filter((s) => s.source === "sampler" && s.parts.some((p) => p.values.length > 1));
  if (!sampled.length) return;
  const rank = (s) => ["memory.", "cpu.", "gpu."].findIndex((start) => s.metric.startsWith(start));
  sampled.sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name, "en", { numeric: true }));
  const grid = make("div", { class: "grid" });
  holder.append(make("h4", { text: "Process and machine over the run" }), grid);
  for (const series of sampled) {
    const small = figure(series.name);
    grid.append(small.whole);
    keepDrawn(small.whole, () => showOverTime(small, block, series, { small: true }));
  }
}

function keepDrawn(watched, draw) {
  let width = 0;
  drawings.add({ watched, draw });
  new ResizeObserver(() => {
    if (watched.clientWidth === width || !watched.clientWidth) return;
    width = watched.clientWidth;
    draw();
  }).observe(watched);
}

function redrawAll() {
  for (const { watched, draw } of drawings) if (watched.clientWidth) draw();
}

function showDistribution(chart, block, series, log) {
  const found = drawDistribution(chart.canvas, block, series, log);
  const launches = series.parts.length;
  const words = [`${series.count.toLocaleString("en-GB")} samples of ${launches} launch${launches === 1 ? "" : "es"}` +
    (series.warm ? `, ${series.warm.toLocaleString("en-GB")} of them warm-up` : "")];
  if (found.stride > 1) words.push(`${found.drawn.toLocaleString("en-GB")} are drawn (every ${found.stride}th and the extremes of each launch); all are in the file`);
  if (found.beyond) words.push(`${found.beyond} lie${found.beyond === 1 ? "s" : ""} beyond the axis (‹ ›)`);
  if (found.notFinite) words.push(`${found.notFinite} not a finite number`);
  chart.note.textContent = words.join(" · ");
  chart.canvas.dataset.samples = series.count;
  chart.canvas.dataset.drawn = found.drawn;
  chart.canvas.setAttribute("aria-label", `${series.name}: ${chart.note.textContent}`);
  attachTip(chart.canvas, () => found.points, (point) => describe(block, series, point));
}

function showOverTime(chart, block, series, options) {
  let found = drawOverTime(chart.canvas, block, series, options);
  if (options.small) chart.heading.textContent = series.name + (found.unit ? `, ${found.unit}` : "");
  else chart.heading.textContent = `Over the run of each launch: ${series.name}` + (found.unit ? `, ${found.unit}` : "");
  const words = [];
  if (!options.small && series.warm) words.push("warm-up is shaded");
  if (found.beyond) words.push(`${found.beyond.toLocaleString("en-GB")} warm-up samples lie beyond the axis`);
  chart.note.textContent = words.join(" · ");
  let highlight = null;
  attachTip(chart.canvas, () => found.points, (point) => describe(block, series, point), (point) => {
    const launch = point ? point.part.launch : null;
    if (launch === highlight) return;
    highlight = launch;
    found = drawOverTime(chart.canvas, block, series, { ...options, highlight });
  });
}

function describe(block, series, point) {
  const [label, status, warmLaunch] = block.launches[point.part.launch];
  const kind = warmLaunch ? "warm-up launch" : point.warm ? "warm-up" : status === "ok" ? "" : status;
  const which = `${label}, sample ${(point.index + 1).toLocaleString("en-GB")} of ${point.part.values.length.toLocaleString("en-GB")}`;
  return `${formatValue(point.value, series.unit)}\n${which}${kind ? " (" + kind + ")" : ""}`;
}
