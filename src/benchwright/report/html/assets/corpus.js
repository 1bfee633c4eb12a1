// The page of a corpus: the heat map of models and runtimes, sorted, searched and filtered by labels.

document.documentElement.classList.add("scripted");

const corpus = JSON.parse(document.getElementById("data").textContent);
const METRICS = {
  latency: { at: 1, text: (v) => formatValue(v, "s"), low: "short", high: "long", scale: "sequential" },
  speedup: { at: 2, text: (v) => "×" + v.toFixed(2), scale: "diverging" },
  error: { at: 3, text: (v) => (v === 0 ? "0" : v.toExponential(0)), scale: "sequential" },
  memory: { at: 4, text: (v) => formatValue(v, "B"), scale: "sequential" },
};
const [STATE, WORDS, HINT, DOUBT] = [0, 5, 6, 7];
const MEASURED = 0, FAILED = 2, UNJUDGED = 3;

const models = corpus.models.map(([name, parameters, flops, klass, labels, cells]) => {
  const told = Object.fromEntries(Object.entries(labels).map(([key, number]) => [key, corpus.texts[number]]));
  const words = [name, corpus.texts[klass], ...Object.values(told)].join(" ").toLowerCase();
  return { name, parameters, flops, labels: told, cells, words };
});

function element(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

const table = document.getElementById("matrix");
const metric = document.getElementById("metric");
const search = document.getElementById("filter-models");
const outcome = document.getElementById("outcome");
const chosen = [...document.querySelectorAll("select[data-label]")];
let order = { column: -2, way: 1 };
let visible = models;

function value(model, variant, at) {
  const cell = model.cells[variant];
  const usable = cell && (cell[STATE] === MEASURED || cell[STATE] === UNJUDGED);
  return usable && cell[at] !== null ? cell[at] : null;
}

// The share of the way from the lowest to the highest value, on a logarithmic scale.
function span(at) {
  const logs = [];
  for (const model of models)
    for (let v = 0; v < corpus.variants.length; v++) {
      const found = value(model, v, at);
      if (found > 0) logs.push(Math.log(found));
    }
  logs.sort((a, b) => a - b);
  const end = (share) => logs[Math.min(logs.length - 1, Math.floor(share * logs.length))];
  return logs.length ? [end(0.02), end(0.98)] : [0, 1];
}

function shade(found, kind, ends) {
  if (kind.scale === "diverging") {
    const strength = Math.min(1, Math.abs(Math.log2(found)) / 1.5);
    return `color-mix(in srgb, var(--${found >= 1 ? "ok" : "bad"}) ${(strength * 42).toFixed(0)}%, transparent)`;
  }
  if (!(found > 0)) return "";
  const share = ends[1] > ends[0] ? Math.min(1, Math.max(0, (Math.log(found) - ends[0]) / (ends[1] - ends[0]))) : 0.5;
  return `color-mix(in srgb, var(--warm) ${(share * 46).toFixed(0)}%, transparent)`;
}

function fits(model) {
  const wanted = search.value.trim().toLowerCase().split(/\s+/);
  if (!wanted.every((word) => model.words.includes(word))) return false;
  for (const select of chosen)
    if (select.value && !(model.labels[select.dataset.label] ?? "").split(",").includes(select.value)) return false;
  if (!outcome.value) return true;
  const cells = model.cells.filter((cell) => cell);
  if (outcome.value === "failed") return cells.some((cell) => cell[STATE] === FAILED);
  if (outcome.value === "slower") return cells.some((cell, v) => cell[STATE] === MEASURED && cell[2] !== null && cell[2] < 0.98);
  return cells.every((cell) => cell[STATE] === MEASURED);
}

function sorted(found) {
  const { column, way } = order;
  const kind = METRICS[metric.value];
  const key = (model) => (column === -2 ? model.name : column === -1 ? model.parameters : value(model, column, kind.at));
  return found.map((model) => ({ model, key: key(model) })).sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null); // what has no value stays last
    return way * (column === -2 ? a.key.localeCompare(b.key, "en", { numeric: true }) : a.key - b.key);
  }).map(({ model }) => model);
}

function head(title, column) {
  const made = element("th", undefined, column === -2 ? "" : "n");
  const button = element("button", title);
  button.type = "button";
  if (order.column === column) made.setAttribute("aria-sort", order.way > 0 ? "ascending" : "descending");
  button.onclick = () => {
    order = { column, way: order.column === column ? -order.way : column === -2 ? 1 : -1 };
    draw();
  };
  made.scope = "col";
  made.append(button);
  return made;
}

function drawn(model, kind, ends) {
  const row = element("tr");
  const name = element("th", model.name, "name");
  name.scope = "row";
  name.title = Object.entries(model.labels).map(([key, text]) => `${key}: ${text}`).join("\n");
  row.append(name, element("td", model.parameters === null ? "–" : count(model.parameters), "n"));
  model.cells.forEach((cell, variant) => {
    const found = value(model, variant, kind.at);
    const place = element("td", undefined, "n");
    if (!cell) place.textContent = "";
    else if (found !== null) {
      place.textContent = kind.text(found) + (cell[STATE] === UNJUDGED ? " ~" : kind.at === 2 && cell[DOUBT] ? " ?" : "");
      place.style.background = shade(found, kind, ends);
    } else {
      place.textContent = cell[WORDS] ? corpus.texts[cell[WORDS]] : "–";
      place.className = cell[STATE] === FAILED ? "n lost" : "n quiet";
    }
    if (cell && cell[HINT]) place.title = corpus.texts[cell[HINT]];
    row.append(place);
  });
  return row;
}

function count(number) {
  if (number < 1e5) return number.toLocaleString("en-GB");
  return number < 999.95e6 ? Number((number / 1e6).toPrecision(4)) + " M" : Number((number / 1e9).toPrecision(4)) + " B";
}

function draw() {
  const kind = METRICS[metric.value];
  const ends = span(kind.at);
  visible = sorted(models.filter(fits));
  const heads = element("tr");
  heads.append(head("Model", -2), head("Parameters", -1), ...corpus.variants.map(([name], v) => head(name, v)));
  table.tHead.replaceChildren(heads);
  table.tBodies[0].replaceChildren(...visible.map((model) => drawn(model, kind, ends)));
  const total = models.length.toLocaleString("en-GB");
  document.getElementById("shown-models").textContent =
    visible.length === models.length ? `${total} models` : `${visible.length.toLocaleString("en-GB")} of ${total} models`;
  redrawAll();
}

function redrawAll() {
  drawScatter(visible);
}

for (const each of [metric, outcome, ...chosen]) each.onchange = draw;
search.oninput = draw;
document.getElementById("across").onchange = redrawAll;
draw();
setUpTheme();
document.documentElement.dataset.ready = Math.round(performance.now());
