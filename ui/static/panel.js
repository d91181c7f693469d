// The body of a function (element, trigger, props, server, upload, watch): Gradio runs it once per component.
// The value is HTML from our own templates, where every token and text was escaped.

const root = element.querySelector(".pn");
const content = document.createElement("div");
const live = document.createElement("div");
live.className = "pn-live";
live.setAttribute("role", "status");
root.append(content, live);

let acted = null;   // the button that was used last: its data-then names who should hold the focus after it

// ---------------------------------------------------------------- copying

async function copy(button) {
  const target = content.querySelector(`[data-copied-text="${button.dataset.copy}"]`);
  const done = await toClipboard(target.textContent);
  announce(button, done ? button.dataset.done : button.dataset.failed);
}

async function toClipboard(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return throughTextarea(text);   // no clipboard without https
  }
}

function throughTextarea(text) {
  const area = document.createElement("textarea");
  const holder = document.activeElement;
  area.value = text;
  area.className = "pn-live";
  root.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  holder?.focus();
  return done;
}

function announce(button, message) {
  button.dataset.label ??= button.textContent;
  button.textContent = message;
  live.textContent = "";
  requestAnimationFrame(() => { live.textContent = message; });
  setTimeout(() => { button.textContent = button.dataset.label; }, 1600);
}

// ---------------------------------------------------------------- tables

function columnOf(button) {
  return Number(button.dataset.sort);
}

// A cell's place in the order: a number, a text, or null for what is undefined.
function rank(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.value ?? cell.textContent.trim();
  if (text === "–" || text === "") return null;
  const value = Number(text.replace("−", "-").replace(/[<%]/g, ""));
  return Number.isNaN(value) ? text : value;
}

function compare(a, b) {
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
}

function sort(button, direction) {
  const table = button.closest("table");
  const column = columnOf(button);
  const sign = direction === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].map((row) => [rank(row, column), row]);
  rows.sort(([a], [b]) => (a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
  table.querySelectorAll("th[aria-sort]").forEach((th) => th.setAttribute("aria-sort", "none"));
  button.closest("th").setAttribute("aria-sort", direction);
  limit(table);
}

function toggleSort(button) {
  const now = button.closest("th").getAttribute("aria-sort");
  const first = button.dataset.first ?? "descending";
  const other = first === "descending" ? "ascending" : "descending";
  sort(button, now === first ? other : first);
}

// Rows beyond the table's limit are marked; the style sheet hides them until the table shows all.
function limit(table) {
  const count = Number(table.dataset.limit ?? Infinity);
  [...table.tBodies[0].rows].forEach((row, i) => row.classList.toggle("pn-extra", i >= count));
}

function tableOf(button) {
  return content.querySelector(`table[data-keep="${button.dataset.more}"]`);
}

function setAll(button, all) {
  tableOf(button).classList.toggle("pn-all", all);
  button.setAttribute("aria-expanded", String(all));
  button.textContent = all ? button.dataset.less : button.dataset.all;
}

// ---------------------------------------------------------------- what a new value keeps

function remember() {
  const focused = content.contains(document.activeElement) ? document.activeElement : null;
  return {
    action: (focused === acted && focused?.dataset.then) || focused?.dataset.action,
    open: [...content.querySelectorAll("details[data-keep]")].filter((d) => d.open).map((d) => d.dataset.keep),
    sorted: [...content.querySelectorAll("th[aria-sort] > [data-sort]")]
      .map((button) => [button.closest("table").dataset.keep, button.dataset.sort, button.closest("th").getAttribute("aria-sort")])
      .filter(([, , direction]) => direction !== "none"),
    all: [...content.querySelectorAll("[data-more][aria-expanded=true]")].map((button) => button.dataset.more),
  };
}

function recall(kept) {
  for (const details of content.querySelectorAll("details[data-keep]")) {
    if (kept.open.includes(details.dataset.keep)) details.open = true;
  }
  for (const [table, column, direction] of kept.sorted) {
    const button = content.querySelector(`table[data-keep="${table}"] [data-sort="${column}"]`);
    if (button && button.closest("th").getAttribute("aria-sort") !== direction) sort(button, direction);
  }
  for (const button of content.querySelectorAll("[data-more]")) {
    if (kept.all.includes(button.dataset.more)) setAll(button, true);
  }
  if (kept.action) refocus(kept.action);
}

function refocus(action) {
  const buttons = [...content.querySelectorAll("[data-action]")];
  buttons.find((button) => button.dataset.action === action)?.focus({ preventScroll: true });
}

// ---------------------------------------------------------------- life

function act(button) {
  acted = button;
  trigger("action", JSON.parse(button.dataset.action));
}

function show() {
  const kept = remember();
  content.innerHTML = props.value ?? "";
  recall(kept);
  root.dataset.ready = String(Number(root.dataset.ready ?? 0) + 1);
}

content.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button || button.getAttribute("aria-disabled") === "true") return;
  if (button.dataset.copy) copy(button);
  else if (button.dataset.sort) toggleSort(button);
  else if (button.dataset.more) setAll(button, button.getAttribute("aria-expanded") !== "true");
  else if (button.dataset.action) act(button);
});

watch("value", show);
show();
