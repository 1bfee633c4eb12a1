// What all charts share: a sharp canvas, colours of the theme, axes, numbers and the tip under the pointer.

const TICK_FONT = "11px system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";
const AXIS_HEIGHT = 36;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue("--" + name).trim();
  return { text: of("text"), faint: of("faint"), grid: of("grid"), warm: of("warm"), accent: of("accent"),
           shade: of("shade"), dark: of("dark") === "1" };
}

// Launches in order, from blue to magenta; of a comparison, the control's are blue and the treatment's magenta.
function launchColour(index, block, dark) {
  const count = block.launches.length;
  const share = block.controls === undefined ? index / Math.max(1, count - 1) : Number(index >= block.controls);
  const hue = 212 + share * 112;
  return `hsl(${hue.toFixed(0)} ${dark ? "80% 70%" : "68% 46%"})`;
}

function prepare(canvas, height) {
  const width = canvas.parentElement.clientWidth;
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = TICK_FONT;
  return { pen, width, height };
}

// As format_number and format_value of the reports on the screen.
function formatNumber(value) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  const grouped = (digits) => value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  if (size >= 1000) return grouped(size >= 10000 ? 0 : 1);
  if (size >= 0.01 || size === 0) return String(Number(value.toPrecision(4)));
  return value.toExponential(3);
}

function formatValue(value, unit) {
  const { factor, label } = reading(unit, Math.abs(value));
  return formatNumber(value / factor) + (label ? " " + label : "");
}

// The unit in which a number of this size reads well.
function reading(unit, size) {
  if (unit === "s" && size > 0 && size < 1) return size >= 1e-3 ? { factor: 1e-3, label: "ms" } : { factor: 1e-6, label: "µs" };
  if (unit === "B") {
    let factor = 1;
    let power = 0;
    while (size / factor >= 1000 && power < 4) (factor *= 1024), power++;
    return { factor, label: ["B", "KiB", "MiB", "GiB", "TiB"][power] };
  }
  if (unit === "FLOP" || unit === "FLOP/s" || unit === "B/s") {
    let power = 0;
    while (size / 1000 ** power >= 999.5 && power < 6) power++;
    return { factor: 1000 ** power, label: ["", "k", "M", "G", "T", "P", "E"][power] + unit };
  }
  return { factor: 1, label: unit || "" };
}

// All marks of an axis are written in the same way: `largest` decides.
function tickText(value, step, largest) {
  const size = Math.abs(value);
  if (size && (largest < 1e-4 || size >= 1e15)) return value.toExponential(1);
  for (const [from, by, letter] of [[1e9, 1e9, "G"], [1e6, 1e6, "M"], [1e4, 1e3, "k"]])
    if (largest >= from) return value ? Number((value / by).toPrecision(6)) + " " + letter : "0";
  const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)));
  return value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function niceTicks(low, high, most) {
  const raw = (high - low) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step || 0); // no minus zero
  return { ticks, step };
}

// An axis from `low` to `high` over pixels `from` to `to`. Logarithmic where asked for and possible.
function axis(low, high, from, to, log) {
  const usable = log && low > 0;
  if (!(high > low)) {
    const pad = Math.abs(low) * 0.05 || 1;
    low -= pad;
    high += pad;
  }
  const warp = usable ? Math.log : (v) => v;
  const [a, b] = [warp(low), warp(high)];
  return { low, high, log: usable, at: (v) => from + ((warp(v) - a) / (b - a)) * (to - from) };
}

function padded(low, high, share = 0.04) {
  const pad = (high - low) * share;
  return [low - pad, high + pad];
}

function axisTicks(scale, unit, most) {
  const { factor, label } = reading(unit, Math.max(Math.abs(scale.low), Math.abs(scale.high)));
  if (scale.log) {
    const ticks = [];
    for (let p = Math.floor(Math.log10(scale.low / factor)); p <= Math.log10(scale.high / factor); p++)
      for (const m of [1, 2, 5]) ticks.push(m * 10 ** p);
    const inside = ticks.filter((t) => t * factor >= scale.low && t * factor <= scale.high);
    const every = Math.ceil(inside.length / Math.max(1, most));
    const kept = inside.filter((_, i) => i % every === 0);
    if (kept.length > 1) return { label, marks: kept.map((t) => ({ value: t * factor, text: tickText(t, t, t) })) };
  }
  const { ticks, step } = niceTicks(scale.low / factor, scale.high / factor, most);
  const largest = Math.max(...ticks.map(Math.abs), 0);
  return { label, marks: ticks.map((t) => ({ value: t * factor, text: tickText(t, step, largest) })) };
}

function drawBottomAxis(pen, scale, unit, title, area, colour) {
  const { label, marks } = axisTicks(scale, unit, Math.max(2, Math.floor((area.right - area.left) / 72)));
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const { value, text } of marks) {
    const x = Math.round(scale.at(value)) + 0.5;
    line(pen, x, area.top, x, area.bottom, colour.grid);
    pen.fillStyle = colour.faint;
    const half = pen.measureText(text).width / 2;
    pen.fillText(text, Math.min(Math.max(x, area.left - 20 + half), area.right - half + 6), area.bottom + 5);
  }
  line(pen, area.left, area.bottom + 0.5, area.right, area.bottom + 0.5, colour.faint);
  pen.textAlign = "right";
  pen.fillStyle = colour.faint;
  pen.fillText(clipText(pen, title + (label ? `, ${label}` : ""), area.right - area.left), area.right, area.bottom + 21);
}

function line(pen, x1, y1, x2, y2, colour, width = 1, dash = []) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x1, y1);
  pen.lineTo(x2, y2);
  pen.stroke();
  pen.setLineDash([]);
}

function clipText(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  const letters = Array.from(text);
  while (letters.length > 1 && pen.measureText(letters.join("") + "…").width > room) letters.pop();
  return letters.join("") + "…";
}

function finiteRange(values) {
  let low = Infinity;
  let high = -Infinity;
  for (const v of values)
    if (Number.isFinite(v)) {
      if (v < low) low = v;
      if (v > high) high = v;
    }
  return low <= high ? [low, high] : null;
}

// Shows what `describe(point)` says of the drawn point nearest to the pointer. `points` are {x, y, …} in pixels.
function attachTip(canvas, points, describe, changed) {
  const tip = document.getElementById("tip");
  canvas.onpointermove = (event) => {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let best = null;
    let nearest = 30 ** 2;
    for (const point of points()) {
      const distance = (point.x - x) ** 2 + (point.y - y) ** 2;
      if (distance < nearest) (nearest = distance), (best = point);
    }
    changed?.(best);
    tip.hidden = !best;
    if (!best) return;
    tip.textContent = describe(best);
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, room)) + window.scrollX + "px";
    tip.style.top = event.clientY + 16 + window.scrollY + "px";
  };
  canvas.onpointerleave = () => {
    tip.hidden = true;
    changed?.(null);
  };
}
