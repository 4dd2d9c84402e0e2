"use strict";
// The page works on columns of numbers: cells.producer[i] is an index into names.producer.
const AXES = ["route", "protocol", "dtype", "layout", "device"];
const LABELS = { route: "delivered by", protocol: "read by", dtype: "dtype", layout: "layout", device: "device" };
const ORDER = ["works", "copies", "refused", "absent", "WRONG", "CRASHED", "HUNG"];
const MARK = { copies: "c", refused: "r", absent: "-", WRONG: "W", CRASHED: "X", HUNG: "H" };
const state = { filters: {}, pair: null };
let names, columns, costs, total, exchanges;

function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

async function unpack() {
  const packed = atob(document.getElementById("data").textContent.trim());
  const bytes = Uint8Array.from(packed, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

// What ended a process at an import or at its exit is no exchange: it stands in the list of what went wrong.
const ENDS = ["import", "exit"];
const text = (axis, i) => names[axis][columns[axis][i]];

function* visible() {
  const wanted = AXES.filter((axis) => state.filters[axis]).map((axis) => [columns[axis], names[axis].indexOf(state.filters[axis])]);
  for (const i of exchanges) {
    if (wanted.every(([column, value]) => column[i] === value)) yield i;
  }
}

function count(indices) {
  const counts = Object.fromEntries(ORDER.map((status) => [status, 0]));
  for (const i of indices) counts[text("status", i)]++;
  return counts;
}

function brief(counts) {
  const all = ORDER.reduce((sum, status) => sum + counts[status], 0);
  const single = ["works", "copies", "refused"].find((status) => counts[status] === all);
  if (single) return single;
  const parts = counts.works ? [String(counts.works)] : [];
  return parts.concat(ORDER.filter((s) => s !== "works" && counts[s]).map((s) => counts[s] + MARK[s])).join(" ");
}

function stripes(counts) {
  const all = ORDER.reduce((sum, status) => sum + counts[status], 0);
  const colours = { works: "works", copies: "copies", refused: "refused", absent: "absent", WRONG: "wrong", CRASHED: "wrong", HUNG: "wrong" };
  let at = 0;
  const stops = ORDER.filter((status) => counts[status]).map((status) => {
    const from = at;
    at += (100 * counts[status]) / all;
    return `var(--${colours[status]}) ${from}% ${at}%`;
  });
  return `linear-gradient(90deg, ${stops.join(", ")})`;
}

function pairs() {
  const found = new Map();
  for (const i of visible()) {
    const key = columns.producer[i] * 1000 + columns.consumer[i];
    if (!found.has(key)) found.set(key, []);
    found.get(key).push(i);
  }
  return found;
}

function drawMap(found) {
  const producers = names.producer.map((_, p) => p).filter((p) => names.consumer.some((_, c) => found.has(p * 1000 + c)));
  const consumers = names.consumer.map((_, c) => c).filter((c) => names.producer.some((_, p) => found.has(p * 1000 + c)));
  const table = element("table", { className: "map" });
  table.append(element("tr", {}, element("th"), ...consumers.map((c) => element("th", { scope: "col", textContent: names.consumer[c] }))));
  for (const p of producers) {
    const row = element("tr", {}, element("th", { scope: "row", textContent: names.producer[p] }));
    for (const c of consumers) row.append(element("td", {}, drawPair(found, p, c)));
    table.append(row);
  }
  document.getElementById("map").replaceChildren(table);
  markCut();
}

function markCut() {
  for (const box of document.querySelectorAll(".frame > .scroll")) {
    const wide = box.scrollWidth > box.clientWidth + 1;
    box.parentElement.classList.toggle("wide", wide);
    box.parentElement.classList.toggle("cut", wide && box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
  }
}
addEventListener("resize", markCut);
document.addEventListener("scroll", markCut, true);
markCut();

function drawPair(found, p, c) {
  const key = p * 1000 + c;
  if (!found.has(key)) return element("span", { className: "none", textContent: "–" });
  const counts = count(found.get(key));
  const button = element("button", { className: "cell", type: "button", textContent: brief(counts) });
  button.style.background = stripes(counts);
  button.dataset.pair = `${names.producer[p]} to ${names.consumer[c]}`;
  button.title = button.dataset.pair;
  button.setAttribute("aria-pressed", String(state.pair === key));
  button.addEventListener("click", () => { state.pair = key; draw(); document.getElementById("detail").scrollIntoView({ block: "nearest" }); });
  return button;
}

const unique = (indices, axis) => [...new Set(indices.map((i) => columns[axis][i]))].sort((a, b) => a - b);

function describe(i) {
  const cost = costs[i] ? `, ${costs[i].toLocaleString("en")} ns` : "";
  const reason = text("reason", i) ? `: ${text("reason", i)}` : "";
  return `${text("dtype", i)} ${text("layout", i)} on ${text("device", i)}: ${text("status", i)}${cost}${reason}`;
}

function drawGrid(indices) {
  const layouts = unique(indices, "layout"), dtypes = unique(indices, "dtype");
  const table = element("table", { className: "grid" });
  table.append(element("tr", {}, element("th"), ...dtypes.map((d) => element("th", { scope: "col", textContent: names.dtype[d] }))));
  for (const layout of layouts) {
    const row = element("tr", {}, element("th", { scope: "row", textContent: names.layout[layout] }));
    for (const dtype of dtypes) {
      const here = indices.filter((i) => columns.layout[i] === layout && columns.dtype[i] === dtype);
      const worst = here.reduce((a, b) => (ORDER.indexOf(text("status", b)) > ORDER.indexOf(text("status", a)) ? b : a), here[0]);
      const cell = element("td");
      if (here.length) {
        const dot = element("button", { className: `dot ${text("status", worst).toLowerCase()}`, type: "button", title: here.map(describe).join("\n") });
        dot.setAttribute("aria-label", describe(worst));
        dot.addEventListener("click", () => { document.getElementById("said").textContent = here.map(describe).join("; "); });
        cell.append(dot);
      }
      row.append(cell);
    }
    table.append(row);
  }
  return element("div", { className: "scroll" }, table);
}

function reasons(indices) {
  const found = new Map();
  for (const i of indices) {
    if (!text("reason", i)) continue;
    const key = `${text("status", i)} (${text("route", i)}): ${text("reason", i)}`;
    found.set(key, (found.get(key) || 0) + 1);
  }
  const list = element("ul", { className: "reasons" });
  for (const [reason, number] of found) list.append(element("li", { textContent: number > 1 ? `${reason} (${number} times)` : reason }));
  return list;
}

function scripts(indices) {
  const shown = new Map(indices.filter((i) => text("reproducer", i)).map((i) => [text("reproducer", i), text("culprit", i)]));
  return [...shown].slice(0, 3).map(([script, culprit]) => element("div", {}, element("p", { textContent: `At fault: ${culprit}. It shows with:` }), element("pre", { textContent: script })));
}

function drawDetail(found) {
  const panel = document.getElementById("detail");
  const indices = found.get(state.pair);
  panel.hidden = !indices;
  if (!indices) return;
  const close = element("button", { className: "plain", type: "button", textContent: "Close" });
  close.addEventListener("click", () => { state.pair = null; draw(); });
  const title = `${text("producer", indices[0])} to ${text("consumer", indices[0])}`;
  const parts = [element("h2", { textContent: title }), close, element("p", { id: "said", textContent: "Click a square for its words." })];
  const grids = element("div", { className: "grids" });
  parts.push(grids);
  for (const route of unique(indices, "route")) {
    for (const protocol of unique(indices, "protocol")) {
      const group = indices.filter((i) => columns.route[i] === route && columns.protocol[i] === protocol);
      if (!group.length) continue;
      const read = names.protocol[protocol] ? `, read by ${names.protocol[protocol]}` : "";
      grids.append(element("div", {}, element("h3", { textContent: `${names.route[route]}${read}` }), drawGrid(group)));
    }
  }
  const rows = unique(indices, "route").map((r) => [names.route[r], median(indices.filter((i) => columns.route[i] === r)), names.route[r]]);
  panel.replaceChildren(...parts, drawBars(rows), reasons(indices), ...scripts(indices));
}

function median(indices) {
  const sorted = indices.map((i) => costs[i]).filter((ns) => ns > 0).sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : 0;
}

function drawBars(rows) {
  const known = rows.filter(([, ns]) => ns);
  const most = Math.max(...known.map(([, ns]) => ns), 1);
  const bars = element("div", { className: "bars" });
  for (const [label, ns, route] of known) {
    const bar = element("div", { className: `bar ${route === "convert" ? "by-convert" : "by-own"}` });
    bar.style.width = `${(100 * ns) / most}%`;
    bars.append(element("span", { textContent: label }), bar, element("span", { className: "number", textContent: `${ns.toLocaleString("en")} ns` }));
  }
  return bars;
}

function drawCosts(found) {
  const byConsumer = new Map();
  for (const indices of found.values()) {
    for (const i of indices) {
      const key = `${text("consumer", i)}, ${text("route", i)}`;
      if (!byConsumer.has(key)) byConsumer.set(key, []);
      byConsumer.get(key).push(i);
    }
  }
  const rows = [...byConsumer].map(([label, indices]) => [label, median(indices), text("route", indices[0])]);
  document.getElementById("cost").replaceChildren(drawBars(rows.sort((a, b) => a[1] - b[1])));
}

function draw() {
  const found = pairs();
  drawMap(found);
  drawDetail(found);
  drawCosts(found);
  const counts = count(visible());
  const shown = ORDER.reduce((sum, status) => sum + counts[status], 0);
  const parts = ORDER.filter((s) => counts[s]).map((s) => `${counts[s].toLocaleString("en")} ${s === "works" ? "zero-copy" : s}`);
  document.getElementById("shown").textContent = `${shown.toLocaleString("en")} of ${total.toLocaleString("en")} exchanges: ${parts.join(", ")}`;
}

function drawFilters() {
  const form = document.getElementById("filters");
  for (const axis of AXES) {
    const select = element("select", { name: axis });
    select.append(element("option", { value: "", textContent: "all" }));
    for (const name of names[axis]) if (name && !ENDS.includes(name)) select.append(element("option", { value: name, textContent: name }));
    select.addEventListener("change", () => { state.filters[axis] = select.value; draw(); });
    form.append(element("label", {}, LABELS[axis], select));
  }
  form.hidden = false;
}

unpack().then((data) => {
  ({ names, columns } = data);
  costs = data.cost_ns;
  exchanges = [...costs.keys()].filter((i) => !ENDS.includes(text("route", i)));
  total = exchanges.length;
  drawFilters();
  draw();
  document.body.dataset.ready = "yes";
}).catch((error) => {
  document.getElementById("shown").textContent = `The tables below are complete; filters need a newer browser (${error}).`;
});
