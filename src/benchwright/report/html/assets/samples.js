// Raw samples, unpacked when they are looked at. packing.py says how they are laid out.

const unpacked = new Map();

function samplesOf(number) {
  if (!unpacked.has(number)) unpacked.set(number, unpack(number));
  return unpacked.get(number);
}

async function unpack(number) {
  const block = JSON.parse(document.getElementById("d" + number).textContent);
  const flat = await inflate(block.data);
  let at = 0;
  for (const series of block.series) {
    const count = series.parts.reduce((sum, part) => sum + written(part), 0);
    const size = series.wide ? 8 : 4;
    const values = fromPlanes(flat.subarray(at, at + count * size), count, size);
    at += count * size;
    let from = 0;
    series.parts = series.parts.map((part) => {
      const [launch, warm, , value, items] = part;
      return { launch, warm, value, items, values: values.subarray(from, (from += written(part))) };
    });
    if (series.unit?.length > 16) series.unit = series.unit.slice(0, 15) + "…";
  }
  for (const series of block.series) {
    for (const part of series.parts) if (part.items) part.values = stepTimes(block, series, part).values.map((s) => part.items / s);
    series.count = series.parts.reduce((sum, part) => sum + part.values.length, 0);
    series.warm = series.parts.reduce((sum, part) => sum + part.warm, 0);
  }
  return block;
}

// A rate that follows from the step times is not written again.
function written([, warm, measured, , items]) {
  return items ? 0 : warm + measured;
}

// The step times of the same loop in the same launch.
function stepTimes(block, series, part) {
  const name = series.metric.replace(/rate$/, "step_time");
  const steps = block.series.find((s) => s.metric === name && sameLabels(s.labels, series.labels));
  return steps.parts.find((p) => p.launch === part.launch);
}

async function inflate(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromPlanes(planes, count, size) {
  const bytes = new Uint8Array(count * size);
  for (let byte = 0; byte < size; byte++)
    for (let i = 0; i < count; i++) bytes[i * size + byte] = planes[byte * count + i];
  const view = new DataView(bytes.buffer);
  const read = size === 8 ? (i) => view.getFloat64(i * 8, true) : (i) => view.getFloat32(i * 4, true);
  return Float64Array.from({ length: count }, (_, i) => read(i));
}
