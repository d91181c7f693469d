// The body of a function (element, trigger, props, server, upload, watch): Gradio runs it once per component.
// Row and column -1 are the headers: a header stands for its whole row or column, the corner for everything.

const root = element.querySelector(".hg");
const grid = make("div", { class: "hg-grid", role: "grid", "aria-multiselectable": "true" });
const count = make("div", { class: "hg-count", "aria-live": "polite" });
const reason = make("div", { class: "hg-reason" });
const hint = make("div", { class: "hg-hint" });
root.append(grid, make("div", { class: "hg-foot" }, count, hint), reason);

let shared = props.shared ?? {};   // {words, disabled, heat}: what Python changes beside the value
let layers = 0;
let heads = 0;
let chosen = new Set();      // layer * heads + head
let nodes = new Map();       // "row,column" -> element
let active = { row: 0, column: 0 };   // the one Tab stop
let gesture = null;          // {anchor, on, before}: a drag or a Shift + arrow run

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function word(key, values = {}) {
  return (shared.words?.[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function range(from, to) {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

// ---------------------------------------------------------------- cells

// The layers (or heads) that the positions from one to another stand for.
function span(from, to, size) {
  const [low, high] = [Math.min(from, to), Math.max(from, to)];
  return low < 0 ? range(0, size - 1) : range(low, high);
}

// All cells of the box between two positions; a header widens the box to its whole row or column.
function box(a, b) {
  const columns = span(a.column, b.column, heads);
  return span(a.row, b.row, layers).flatMap((layer) => columns.map((head) => layer * heads + head));
}

function isOn(position) {
  return box(position, position).every((cell) => chosen.has(cell));
}

function paint(to) {
  chosen = new Set(gesture.before);
  for (const cell of box(gesture.anchor, to)) gesture.on ? chosen.add(cell) : chosen.delete(cell);
  show();
}

function begin(anchor, on) {
  gesture = { anchor, on, before: new Set(chosen) };
}

function toggle(position) {
  begin(position, !isOn(position));
  paint(position);
  gesture = null;
  commit();
}

function commit() {
  const cells = [...chosen].sort((a, b) => a - b).map((cell) => [Math.floor(cell / heads), cell % heads]);
  const value = { layers, heads, cells, all: cells.length === layers * heads };
  if (JSON.stringify(value.cells) === JSON.stringify(props.value.cells)) return;
  props.value = value;
  trigger("input");
}

// ---------------------------------------------------------------- page

function build() {
  nodes = new Map();
  active = { row: Math.min(active.row, layers - 1), column: Math.min(active.column, heads - 1) };
  grid.replaceChildren(...range(-1, layers - 1).map((row) => {
    return make("div", { role: "row", class: "hg-row" }, ...range(-1, heads - 1).map((column) => makeCell(row, column)));
  }));
  root.style.setProperty("--hg-columns", heads);
  root.style.setProperty("--hg-height", layers <= 6 ? "26px" : layers <= 12 ? "23px" : "17px");
  grid.setAttribute("aria-rowcount", layers + 1);
  grid.setAttribute("aria-colcount", heads + 1);
}

function makeCell(row, column) {
  const isHeader = row < 0 || column < 0;
  const role = row < 0 ? "columnheader" : column < 0 ? "rowheader" : "gridcell";
  const node = make("div", { role, tabindex: "-1", class: isHeader ? "hg-header" : "hg-cell" });
  node.dataset.row = row;
  node.dataset.column = column;
  nodes.set(`${row},${column}`, node);
  return node;
}

function nodeAt({ row, column }) {
  return nodes.get(`${row},${column}`);
}

function positionOf(node) {
  const cell = node?.closest?.("[data-row]");
  return cell && grid.contains(cell) ? { row: Number(cell.dataset.row), column: Number(cell.dataset.column) } : null;
}

function headerText(row, column) {
  if (row < 0 && column < 0) return word("corner");
  return row < 0 ? `${heads > 12 ? "" : "H"}${column}` : `L${row}`;
}

function nameOf(row, column) {
  if (row < 0 && column < 0) return word("corner_help");
  if (row < 0) return word("column", { head: column });
  if (column < 0) return word("row", { layer: row });
  const name = word("cell", { layer: row, head: column });
  const heat = shared.heat?.[row]?.[column];
  return typeof heat === "number" ? `${name}, ${word("heat", { value: heat.toFixed(4) })}` : name;
}

function label() {
  grid.setAttribute("aria-label", word("label"));
  hint.textContent = word("hint");
  for (const node of nodes.values()) {
    const { row, column } = positionOf(node);
    if (row < 0 || column < 0) node.textContent = headerText(row, column);
    node.setAttribute("aria-label", nameOf(row, column));
    node.title = nameOf(row, column);
  }
}

function heatUp() {
  const values = (shared.heat ?? []).flat().filter((value) => typeof value === "number");
  const top = Math.max(0, ...values);
  for (const node of nodes.values()) {
    const { row, column } = positionOf(node);
    const value = shared.heat?.[row]?.[column];
    node.style.setProperty("--hg-heat", top > 0 && value > 0 ? Math.sqrt(value / top).toFixed(3) : 0);
  }
}

function show() {
  for (const [, node] of nodes) {
    const position = positionOf(node);
    node.setAttribute("aria-selected", isOn(position));
    node.tabIndex = position.row === active.row && position.column === active.column ? 0 : -1;
  }
  count.textContent = summary();
  root.dataset.chosen = chosen.size;
}

function summary() {
  const total = layers * heads;
  if (chosen.size === 0) return word("none");
  return chosen.size === total ? word("everything", { total }) : word("count", { count: chosen.size, total });
}

function disable() {
  const isDisabled = Boolean(shared.disabled);
  root.classList.toggle("hg-disabled", isDisabled);
  grid.setAttribute("aria-disabled", isDisabled);
  reason.textContent = isDisabled ? shared.disabled : "";
}

// ---------------------------------------------------------------- mouse and finger

function startDrag(event) {
  const position = positionOf(event.target);
  if (!position || shared.disabled || event.button !== 0) return;
  if (event.shiftKey) begin(active, true);
  else begin(position, !isOn(position));
  if (!event.shiftKey) active = position;
  grid.setPointerCapture(event.pointerId);
  paint(position);
}

function drag(event) {
  if (!gesture || !grid.hasPointerCapture(event.pointerId)) return;
  const position = positionOf(document.elementFromPoint(event.clientX, event.clientY));
  if (position) paint(position);
}

function endDrag(event) {
  if (!gesture || !grid.hasPointerCapture(event.pointerId)) return;
  gesture = null;
  nodeAt(active)?.focus({ preventScroll: true });
  commit();
}

// The browser took the gesture over, to scroll: nothing was meant.
function cancelDrag() {
  if (!gesture) return;
  chosen = gesture.before;
  gesture = null;
  show();
}

// ---------------------------------------------------------------- keyboard

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function next(key, isFar) {
  if (key === "Home") return { row: isFar ? 0 : active.row, column: 0 };
  if (key === "End") return { row: isFar ? layers - 1 : active.row, column: heads - 1 };
  const [down, right] = MOVES[key];
  return {
    row: Math.max(-1, Math.min(layers - 1, active.row + down)),
    column: Math.max(-1, Math.min(heads - 1, active.column + right)),
  };
}

function pressKey(event) {
  const isMove = event.key in MOVES || event.key === "Home" || event.key === "End";
  const isAll = event.key.toLowerCase() === "a" && (event.ctrlKey || event.metaKey);
  if (isMove) move(next(event.key, event.ctrlKey), event.shiftKey && !shared.disabled);
  else if (isAll && !shared.disabled) selectAll();
  else if ((event.key === " " || event.key === "Enter") && !shared.disabled) toggle(active);
  else return;
  event.preventDefault();
}

function selectAll() {
  begin({ row: -1, column: -1 }, true);
  paint(gesture.anchor);
  gesture = null;
  commit();
}

function move(to, isExtending) {
  if (isExtending && !gesture) begin(active, true);
  if (!isExtending) gesture = null;
  active = to;
  if (isExtending) {
    paint(to);
    commit();
  } else {
    show();
  }
  nodeAt(active).focus();
}

// ---------------------------------------------------------------- life

function takeValue() {
  const value = props.value;
  if (!value?.layers) return;
  gesture = null;
  const isResized = value.layers !== layers || value.heads !== heads;
  ({ layers, heads } = value);
  chosen = new Set(value.cells.map(([layer, head]) => layer * heads + head));
  if (isResized) {
    build();
    label();
    heatUp();
  }
  show();
}

grid.addEventListener("pointerdown", startDrag);
grid.addEventListener("pointermove", drag);
grid.addEventListener("pointerup", endDrag);
grid.addEventListener("pointercancel", cancelDrag);
grid.addEventListener("keydown", pressKey);
grid.addEventListener("keyup", (event) => { if (event.key === "Shift") gesture = null; });
grid.addEventListener("focusin", (event) => { active = positionOf(event.target) ?? active; });
watch("value", takeValue);
watch("shared", () => {
  shared = props.shared ?? shared;
  label();
  heatUp();
  show();
  disable();
});
takeValue();
disable();
root.dataset.ready = "true";
