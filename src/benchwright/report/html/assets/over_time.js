// A metric over the run of each launch, warm-up shaded.

const DOTS_UP_TO = 80; // samples of a launch that are marked one by one

function drawOverTime(canvas, block, series, { small = false, highlight = null, log = false } = {}) {
  const colour = colours();
  const courses = series.parts.filter((p) => p.values.length).map((part) => courseOf(block, series, part));
  const { pen, width, height } = prepare(canvas, small ? 150 : 210 + AXIS_HEIGHT + 8);
  const vertical = verticalRange(series, small);
  const area = { left: 10, right: width - 8, top: small ? 8 : 8, bottom: height - AXIS_HEIGHT };
  if (!vertical) return emptyChart(pen, area, colour);
  const y = axis(vertical[0], vertical[1], area.bottom, area.top, log);
  const { label, marks } = axisTicks(y, series.unit, small ? 4 : 7);
  area.left = Math.max(28, 10 + Math.max(0, ...marks.map((m) => pen.measureText(m.text).width)));
  const last = Math.max(...courses.map((c) => c.x[c.x.length - 1]));
  const x = axis(courses[0].fromZero ? 0 : Math.min(1, last), Math.max(last, 1e-9), area.left, area.right, false);
  shadeWarmup(pen, courses, x, area, colour);
  drawLeftAxis(pen, y, marks, area, colour);
  drawBottomAxis(pen, x, null, courses[0].axis, area, colour);
  pen.save();
  pen.beginPath();
  pen.rect(area.left, area.top - 3, area.right - area.left + 3, area.bottom - area.top + 4);
  pen.clip();
  const points = [];
  for (const course of courses) drawCourse(pen, course, { x, y, area, colour, block, highlight, points });
  pen.restore();
  const beyond = series.parts.reduce((n, p) => n + p.values.filter((v) => v < y.low || v > y.high).length, 0);
  return { points, beyond, unit: label };
}

// When each sample was taken: seconds in steps for a loop, seconds for what is sampled, else its number.
function courseOf(block, series, part) {
  const steps = block.series.find((s) => s.metric.endsWith("step_time") && sameLabels(s.labels, series.labels));
  const timing = steps?.parts.find((p) => p.launch === part.launch && p.values.length === part.values.length);
  if (timing && series.source !== "sampler") {
    let sum = 0;
    return { part, x: Float64Array.from(timing.values, (s) => (sum += s)), axis: "time in the loop, s", fromZero: true };
  }
  if (series.source === "sampler" && block.interval_s) {
    const x = Float64Array.from(part.values, (_, i) => i * block.interval_s);
    return { part, x, axis: "time, about, s", fromZero: true };
  }
  return { part, x: Float64Array.from(part.values, (_, i) => i + 1), axis: "sample", fromZero: false };
}

function sameLabels(a, b) {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
}

// Warm-up is drawn in the same frame unless it would squeeze what was measured.
function verticalRange(series, small) {
  const measured = finiteRange(series.parts.flatMap((p) => finiteRange(p.values.subarray(p.warm)) ?? []));
  const everything = finiteRange(series.parts.flatMap((p) => finiteRange(p.values) ?? []));
  if (!everything) return null;
  let [low, high] = measured ?? everything;
  const room = 1.5 * Math.max(high - low, Math.abs(high) * 0.02);
  if (small || everything[1] <= high + room) high = everything[1];
  if (small || everything[0] >= low - room) low = everything[0];
  if (small && low > 0) return [0, high * 1.08];
  if (high - low < Math.abs(high) * 1e-3) (low -= Math.abs(high) * 0.01), (high += Math.abs(high) * 0.01);
  return padded(low, high, 0.06);
}

function shadeWarmup(pen, courses, x, area, colour) {
  const share = 1 / courses.length;
  for (const { part, x: times } of courses)
    if (part.warm) {
      const end = x.at(times[part.warm - 1]);
      pen.globalAlpha = 0.05 + 0.17 * share;
      pen.fillStyle = colour.warm;
      pen.fillRect(area.left, area.top, Math.max(2, end - area.left), area.bottom - area.top);
    }
  pen.globalAlpha = 1;
}

function drawLeftAxis(pen, y, marks, area, colour) {
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const { value, text } of marks) {
    const at = Math.round(y.at(value)) + 0.5;
    line(pen, area.left, at, area.right, at, colour.grid);
    pen.fillStyle = colour.faint;
    pen.fillText(text, area.left - 6, at);
  }
}

function drawCourse(pen, course, frame) {
  const { part } = course;
  const { block, colour, highlight, points } = frame;
  const [, status, warmLaunch] = block.launches[part.launch];
  const own = status === "ok" && !warmLaunch ? launchColour(part.launch, block, colour.dark) : colour.faint;
  const many = block.launches.length;
  pen.globalAlpha = highlight === null ? (many > 20 ? 0.35 : many > 4 ? 0.6 : 0.9) : highlight === part.launch ? 1 : 0.12;
  const place = (i) => ({ x: frame.x.at(course.x[i]), y: frame.y.at(part.values[i]), part, index: i, value: part.values[i], warm: i < part.warm });
  const kept = thinned(course, frame.area.right - frame.area.left).map(place);
  const alpha = pen.globalAlpha;
  if (highlight === null) pen.globalAlpha = alpha * 0.7;
  stroke(pen, kept.filter((p) => p.warm || p.index === part.warm), colour.warm, highlight === part.launch);
  pen.globalAlpha = alpha;
  stroke(pen, kept.filter((p) => !p.warm), own, highlight === part.launch);
  if (part.values.length <= DOTS_UP_TO)
    for (const p of kept)
      if (Number.isFinite(p.value)) {
        pen.beginPath();
        pen.arc(p.x, p.y, kept.length === 1 ? 3 : 1.8, 0, 7);
        pen.fillStyle = p.warm ? colour.warm : own;
        pen.fill();
      }
  pen.globalAlpha = 1;
  points.push(...kept.filter((p) => Number.isFinite(p.value)));
}

// Of more samples than pixels, the least and the greatest of each pixel's: the line looks the same.
function thinned(course, pixels) {
  const { part } = course;
  const count = part.values.length;
  const size = Math.ceil(count / Math.max(60, pixels));
  if (size < 3) return Array.from({ length: count }, (_, i) => i);
  const kept = new Set([0, Math.max(0, part.warm - 1), Math.min(part.warm, count - 1), count - 1]);
  for (let from = 0; from < count; from += size) {
    const ends = extremes(part.values.subarray(from, Math.min(count, from + size)));
    for (const end of ends) kept.add(from + end);
  }
  return [...kept].sort((a, b) => a - b);
}

function stroke(pen, points, colour, strong) {
  pen.strokeStyle = colour;
  pen.lineWidth = strong ? 2 : 1.25;
  pen.lineJoin = "round";
  pen.beginPath();
  let down = false;
  for (const { x, y, value } of points) {
    if (!Number.isFinite(value)) down = false;
    else if (down) pen.lineTo(x, y);
    else pen.moveTo(x, y), (down = true);
  }
  pen.stroke();
}
