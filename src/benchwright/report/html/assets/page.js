// The page itself: sorting and filtering the results, opening benchmarks, charts drawn when they come into view.

document.documentElement.classList.add("scripted");

// A page of several runs has a table for each.
function setUpTable(table) {
  const section = table.closest("section");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, words: row.cells[0].textContent.toLowerCase() + " " + (row.querySelector(".metric")?.textContent ?? "").toLowerCase() }));
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (button) button.onclick = () => sortBy(body, heads, column, button.dataset.kind);
  });
  const filter = section.querySelector("input[type='search']");
  const status = section.querySelector("select");
  const shown = section.querySelector("output");
  const apply = () => {
    const wanted = filter.value.trim().toLowerCase().split(/\s+/);
    let count = 0;
    for (const { row, words } of rows) {
      const fits = wanted.every((word) => words.includes(word)) && (!status?.value || row.dataset.status === status.value);
      row.hidden = !fits;
      count += fits;
    }
    shown.textContent = count === rows.length ? "" : `${count} of ${rows.length}`;
    markRepeats(body);
  };
  filter.oninput = apply;
  if (status) status.onchange = apply;
  markRepeats(body);
}

function sortBy(body, heads, column, kind) {
  const head = heads[column];
  const first = kind === "number" && head.textContent !== "Status" ? "descending" : "ascending";
  const other = first === "ascending" ? "descending" : "ascending";
  const way = head.getAttribute("aria-sort") === first ? other : first;
  for (const each of heads) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", way);
  const sign = way === "ascending" ? 1 : -1;
  const keyed = [...body.rows].map((row) => ({ row, key: sortKey(row.cells[column], kind) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null); // what has no value stays last
    return sign * (kind === "number" ? a.key - b.key : a.key.localeCompare(b.key, "en", { numeric: true }));
  });
  body.append(...keyed.map(({ row }) => row));
  markRepeats(body);
}

function sortKey(cell, kind) {
  if (!cell || cell.classList.contains("why")) return null;
  if (kind === "text") return cell.textContent;
  return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
}

// Further metrics of the same benchmark: the name is there, but does not shout.
function markRepeats(body) {
  let before = null;
  for (const row of body.rows) {
    if (row.hidden) continue;
    const target = row.cells[0].firstElementChild.hash;
    row.classList.toggle("repeat", target === before);
    before = target;
  }
}

function setUpBenchmarks() {
  const benchmarks = [...document.querySelectorAll("details.benchmark")];
  const waiting = new Set(document.querySelectorAll(".charts"));
  const build = async (holder) => {
    if (!waiting.delete(holder)) return;
    seen.unobserve(holder);
    await buildCharts(holder, holder.parentElement.dataset.number);
  };
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) build(entry.target);
  }, { rootMargin: "300px" });
  for (const holder of waiting) seen.observe(holder);
  // Those of open benchmarks are also made when there is nothing else to do: what is not there cannot be printed.
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 200));
  const next = async () => {
    const holder = [...waiting].find((each) => each.parentElement.open);
    if (!holder) return;
    await build(holder);
    idle(next);
  };
  idle(next);
  const all = (open) => (event) => {
    const section = event.target.closest("section");
    for (const each of benchmarks) if (section.contains(each)) each.open = open;
  };
  for (const button of document.querySelectorAll("[id^='open-all']")) button.addEventListener("click", all(true));
  for (const button of document.querySelectorAll("[id^='close-all']")) button.addEventListener("click", all(false));
  const openTarget = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target?.matches("details.benchmark")) {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", openTarget);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("a[href^='#b']")) setTimeout(openTarget); // also when the address stays the same
  });
  openTarget();
}

setUpTheme();
document.querySelectorAll("table[id^='results']").forEach(setUpTable);
setUpBenchmarks();
document.documentElement.dataset.ready = Math.round(performance.now());
