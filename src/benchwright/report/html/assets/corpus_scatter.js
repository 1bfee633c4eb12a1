// Parameters or arithmetic against latency, both on logarithmic axes: one dot for each model and runtime.

const WIDE = 1100, TALL = 420, LEFT = 78, RIGHT = 16, UP = 14, DOWN = 46;
const HUES = [212, 28, 140, 280, 350, 48, 180, 320, 95, 240];

function drawing(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

function colourOf(variant) {
  const dark = getComputedStyle(document.documentElement).getPropertyValue("--dark").trim() === "1";
  return `hsl(${HUES[variant % HUES.length]} ${dark ? "75% 68%" : "70% 42%"})`;
}

// Powers of ten between two values, and 2 and 5 of each where there are few.
function marks(low, high) {
  const decades = Math.log10(high / low);
  const steps = decades > 4 ? [1] : decades > 1.5 ? [1, 3] : [1, 2, 5];
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
    for (const step of steps) {
      const mark = step * 10 ** power;
      if (mark >= low * 0.999 && mark <= high * 1.001) found.push(mark);
    }
  return found;
}

function drawScatter(shown) {
  const place = document.getElementById("scatter");
  const across = document.getElementById("across").value;
  const points = [];
  for (const model of shown)
    for (let v = 0; v < corpus.variants.length; v++) {
      const latency = value(model, v, METRICS.latency.at);
      if (latency > 0 && model[across] > 0) points.push({ model, v, x: model[across], y: latency });
    }
  const legend = corpus.variants.map(([name], v) => {
    const key = element("span", undefined, "key");
    const dot = element("i", undefined, "dot");
    dot.style.background = colourOf(v);
    key.append(dot, name);
    return key;
  });
  document.getElementById("scatter-legend").replaceChildren(...legend);
  if (!points.length) {
    place.replaceChildren(element("p", "No model shown has both a time and this figure.", "quiet"));
    return;
  }
  const ends = (of) => {
    const found = points.map(of);
    const [low, high] = [Math.min(...found), Math.max(...found)];
    return low === high ? [low / 2, high * 2] : [low / 1.15, high * 1.15];
  };
  const [xs, ys] = [ends((p) => p.x), ends((p) => p.y)];
  const at = (value, [low, high], from, to) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low);
  const right = (value) => at(value, xs, LEFT, WIDE - RIGHT).toFixed(1);
  const down = (value) => at(value, ys, TALL - DOWN, UP).toFixed(1);
  const title = across === "flops" ? "arithmetic of one call" : "parameters";
  const svg = drawing("svg", { viewBox: `0 0 ${WIDE} ${TALL}`, role: "img", "aria-label": `${title} against latency` });
  for (const mark of marks(...xs)) {
    svg.append(drawing("line", { class: "mark", x1: right(mark), x2: right(mark), y1: UP, y2: TALL - DOWN }));
    const words = across === "flops" ? formatValue(mark, "FLOP") : count(mark);
    svg.append(drawing("text", { x: right(mark), y: TALL - DOWN + 16, "text-anchor": "middle" }, words));
  }
  for (const mark of marks(...ys)) {
    svg.append(drawing("line", { class: "mark", x1: LEFT, x2: WIDE - RIGHT, y1: down(mark), y2: down(mark) }));
    svg.append(drawing("text", { x: LEFT - 8, y: Number(down(mark)) + 4, "text-anchor": "end" }, formatValue(mark, "s")));
  }
  svg.append(drawing("text", { x: (LEFT + WIDE) / 2, y: TALL - 8, "text-anchor": "middle" }, title));
  const turned = { x: 14, y: TALL / 2, "text-anchor": "middle", transform: `rotate(-90 14 ${TALL / 2})` };
  svg.append(drawing("text", turned, "latency p50"));
  const size = points.length > 1500 ? 2.2 : points.length > 300 ? 3 : 4;
  for (const { model, v, x, y } of points) {
    const dot = drawing("circle", { class: "model", cx: right(x), cy: down(y), r: size, fill: colourOf(v) });
    const figure = across === "flops" ? formatValue(x, "FLOP") : count(x) + " parameters";
    dot.dataset.tip = `${model.name}\n${corpus.variants[v][0]}: ${formatValue(y, "s")}\n${figure}`;
    svg.append(dot);
  }
  svg.onpointermove = (event) => tipAt(event);
  svg.onpointerleave = () => (document.getElementById("tip").hidden = true);
  place.replaceChildren(svg);
}

function tipAt(event) {
  const tip = document.getElementById("tip");
  const text = event.target.dataset?.tip;
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const beyond = event.pageX + tip.offsetWidth + 24 > document.documentElement.clientWidth;
  tip.style.left = event.pageX + (beyond ? -tip.offsetWidth - 12 : 14) + "px";
  tip.style.top = event.pageY + 12 + "px";
}
