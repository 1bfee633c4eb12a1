// Every sample as a dot: one row for each launch, dots of the same value side by side.

const MOST_DOTS = 5000;

function drawDistribution(canvas, block, series, log) {
  const colour = colours();
  const rows = rowsOf(block, series);
  const plotHeight = Math.max(210, Math.min(rows.length * 14, 1400));
  const { pen, width, height } = prepare(canvas, plotHeight + AXIS_HEIGHT + 8);
  const area = plotArea(pen, rows, width, height);
  const range = finiteRange(series.parts.flatMap((p) => [...finiteRange(p.values.subarray(p.warm)) ?? []])) ??
    finiteRange(series.parts.flatMap((p) => [...finiteRange(p.values) ?? []]));
  if (!range) return emptyChart(pen, area, colour);
  const [low, high] = log ? [range[0] * 0.97, range[1] * 1.03] : padded(...range);
  const scale = axis(low, high, area.left + 4, area.right - 4, log);
  drawMedian(pen, series, scale, area, colour);
  drawBottomAxis(pen, scale, series.unit, series.name, area, colour);
  const rowHeight = (area.bottom - area.top) / rows.length;
  const stride = Math.max(1, Math.ceil(series.count / MOST_DOTS));
  const found = { points: [], drawn: 0, beyond: 0, notFinite: 0, stride };
  rows.forEach((row, index) => {
    const middle = area.top + (index + 0.5) * rowHeight;
    drawRowLabel(pen, row, middle, rowHeight, area, colour, index);
    const dots = rowDots(row, scale, area, stride, found);
    placeRow(dots, middle, rowHeight);
    drawDots(pen, dots, block, colour, series.count);
    for (const part of row.parts)
      if (rows.length > 1 && part.value !== null && part.values.length > 1) {
        const x = scale.at(part.value);
        line(pen, x, middle - rowHeight * 0.44, x, middle + rowHeight * 0.2, colour.text, 2);
      }
    found.points.push(...dots);
    found.drawn += dots.length;
  });
  return found;
}

// One row for each launch; launches that have one sample each share a row, or one for each side of a comparison.
function rowsOf(block, series) {
  const label = (part) => block.launches[part.launch][0];
  if (series.parts.length > 1 && series.parts.every((part) => part.values.length <= 1))
    return block.controls === undefined ? [{ label: "all", parts: series.parts }] : sidesOf(block, series);
  return series.parts.map((part) => ({ label: label(part), parts: [part] }));
}

function sidesOf(block, series) {
  const sides = [
    { label: "control", parts: series.parts.filter((part) => part.launch < block.controls) },
    { label: "treatment", parts: series.parts.filter((part) => part.launch >= block.controls) },
  ];
  return sides.filter((side) => side.parts.length);
}

function plotArea(pen, rows, width, height) {
  const widest = Math.max(...rows.map((row) => pen.measureText(row.label).width));
  const left = rows.length > 1 ? Math.min(Math.max(24, widest + 12), 110, width * 0.3) : 10;
  return { left, right: width - 8, top: 8, bottom: height - AXIS_HEIGHT };
}

function drawMedian(pen, series, scale, area, colour) {
  if (series.interval) {
    const inside = (x) => Math.min(Math.max(x, area.left), area.right); // an interval may reach beyond all samples
    const [a, b] = series.interval.map((v) => inside(scale.log && v <= 0 ? area.left : scale.at(v)));
    pen.fillStyle = colour.shade;
    pen.fillRect(a, area.top, Math.max(1, b - a), area.bottom - area.top);
  }
  if (series.value !== null) {
    const x = scale.at(series.value);
    line(pen, x, area.top, x, area.bottom, colour.accent, 1.5, [5, 3]);
  }
}

function drawRowLabel(pen, row, middle, rowHeight, area, colour, index) {
  if (area.left <= 10 || (rowHeight < 11 && index % Math.ceil(11 / rowHeight))) return;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  pen.fillStyle = colour.faint;
  pen.fillText(clipText(pen, row.label, area.left - 8), area.left - 6, middle);
}

// Of more dots than can be drawn, every n-th, and always the least and the greatest.
function rowDots(row, scale, area, stride, found) {
  const dots = [];
  for (const part of row.parts) {
    const ends = stride > 1 ? extremes(part.values) : [];
    part.values.forEach((value, index) => {
      if (!Number.isFinite(value)) return void found.notFinite++;
      if (index % stride && !ends.includes(index)) return;
      const warm = index < part.warm;
      const x = scale.log && value <= 0 ? -1 : scale.at(value);
      const off = x < area.left ? "left" : x > area.right ? "right" : null;
      if (off) found.beyond++;
      dots.push({ x: Math.min(Math.max(x, area.left + 1), area.right - 1), y: 0, warm, off, part, index, value });
    });
  }
  return dots;
}

function extremes(values) {
  let [low, high] = [0, 0];
  values.forEach((v, i) => {
    if (v < values[low]) low = i;
    if (v > values[high]) high = i;
  });
  return [low, high];
}

// Warm-up lies in a lane of its own below what was measured, where the row is high enough for both.
function placeRow(dots, middle, rowHeight) {
  const inside = dots.filter((dot) => !dot.off);
  const [warm, measured] = [inside.filter((dot) => dot.warm), inside.filter((dot) => !dot.warm)];
  const lanes = rowHeight >= 18 && warm.length && measured.length;
  placeSwarm(measured, lanes ? middle - rowHeight * 0.14 : middle, rowHeight * (lanes ? 0.66 : 1));
  placeSwarm(warm, lanes ? middle + rowHeight * 0.34 : middle, rowHeight * (lanes ? 0.3 : 1));
  for (const dot of dots) if (dot.off) dot.y = lanes && dot.warm ? middle + rowHeight * 0.34 : middle;
}

function placeSwarm(dots, middle, rowHeight) {
  const columns = new Map();
  for (const dot of dots) {
    const column = Math.round(dot.x / 3.5);
    const count = columns.get(column) ?? 0;
    dot.place = count;
    dot.column = column;
    columns.set(column, count + 1);
  }
  const tallest = Math.max(1, ...columns.values());
  const gap = Math.min(3.5, (rowHeight * 0.86) / tallest);
  for (const dot of dots) dot.y = middle + (dot.place % 2 ? 1 : -1) * Math.ceil(dot.place / 2) * gap;
}

function drawDots(pen, dots, block, colour, count) {
  const radius = count > 2000 ? 1.5 : count > 300 ? 1.9 : 2.6;
  for (const dot of dots.sort((a, b) => b.warm - a.warm)) {
    const [, status, warmLaunch] = block.launches[dot.part.launch];
    pen.beginPath();
    if (dot.off) {
      const inwards = dot.off === "left" ? 4 : -4;
      pen.moveTo(dot.x + inwards, dot.y - 3), pen.lineTo(dot.x, dot.y), pen.lineTo(dot.x + inwards, dot.y + 3);
    } else pen.arc(dot.x, dot.y, radius, 0, 7);
    if (dot.warm || warmLaunch) {
      pen.strokeStyle = colour.warm;
      pen.lineWidth = 1;
      pen.stroke();
    } else {
      pen.globalAlpha = status === "ok" ? 0.62 : 0.4;
      pen.fillStyle = status === "ok" ? launchColour(dot.part.launch, block, colour.dark) : colour.faint;
      pen.fill();
      pen.globalAlpha = 1;
    }
  }
}

function emptyChart(pen, area, colour) {
  pen.fillStyle = colour.faint;
  pen.textAlign = "center";
  pen.fillText("no finite value", (area.left + area.right) / 2, (area.top + area.bottom) / 2);
  return { points: [], drawn: 0, beyond: 0, notFinite: 0, stride: 1, empty: true };
}
