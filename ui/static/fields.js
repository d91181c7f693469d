// The body of a function (element, trigger, props, server, upload, watch): Gradio runs it once per component.
// The value holds what stands in the fields, as text; Python reads it, checks it and says what is wrong.

const root = element.querySelector(".fd");
let shared = props.shared ?? {};   // {fields, problems, words}: what Python changes beside the value
let built = "";                    // the fields that are on the page
const parts = new Map();           // name -> {about, input, range, problem, preview}

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function word(key, values = {}) {
  return (shared.words?.[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

// ---------------------------------------------------------------- building

function build() {
  parts.clear();
  root.replaceChildren(...(shared.fields ?? []).map(makeField));
  built = JSON.stringify(shared.fields);
}

function makeField(about) {
  const id = `${about.id}-field`;
  const isLong = about.kind === "picture";
  const input = make(isLong ? "textarea" : "input", {
    id, autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-help ${id}-problem`,
    ...(isLong ? { rows: "5" } : { type: "text", inputmode: about.slider ? "decimal" : "text" }),
  });
  input.readOnly = Boolean(about.locked);
  const range = about.slider ? makeRange(about) : null;
  const problem = make("div", { id: `${id}-problem`, class: "problem" });
  const preview = isLong ? make("canvas", { class: "fd-preview", role: "img" }) : null;
  const row = make("div", { class: "fd-row" }, input, ...(range ? [range] : []), ...(preview ? [preview] : []));
  const label = make("label", { for: id });
  label.textContent = about.label;
  const help = make("p", { id: `${id}-help`, class: "fd-help" });
  help.textContent = about.help;
  parts.set(about.name, { about, input, range, problem, preview });
  input.addEventListener("input", () => { follow(about.name); commit(); });
  range?.addEventListener("input", () => { input.value = fromRange(about, Number(range.value)); });
  range?.addEventListener("change", commit);
  return make("div", { id: about.id, class: `fd-field fd-${about.kind}` }, label, help, row, problem);
}

function makeRange(about) {
  const [low, high] = about.slider.map((number) => toRange(about, number));
  const step = about.kind === "int" ? 1 : about.log ? 0.01 : (high - low) / 100;
  const range = make("input", { type: "range", min: low, max: high, step, tabindex: "-1" });
  range.setAttribute("aria-label", word("slider", { label: about.label }));
  return range;
}

// A logarithmic range is dragged through its exponents.
function toRange(about, number) {
  return about.log ? Math.log10(number) : number;
}

function fromRange(about, at) {
  return String(about.log ? Number((10 ** at).toPrecision(3)) : Number(at.toPrecision(6)));
}

// ---------------------------------------------------------------- showing

function fill() {
  for (const [name, { input }] of parts) {
    const value = props.value?.values?.[name] ?? "";
    if (input.value !== value) input.value = value;
    follow(name);
  }
  root.dataset.step = `${props.value?.step} ${props.value?.operation}`;
}

// What stands beside a text field follows it.
function follow(name) {
  const { about, input, range, preview } = parts.get(name);
  const number = Number(input.value);
  if (range && input.value.trim() && Number.isFinite(number)) range.value = toRange(about, number);
  if (preview) draw(preview, input.value);
}

function draw(canvas, text) {
  const rows = text.split("\n").map((row) => row.replace(/\s/g, "")).filter(Boolean);
  const n = rows.length;
  const isSquare = n > 0 && n <= 512 && rows.every((row) => row.length === n && !/[^01]/.test(row));
  canvas.hidden = !isSquare;
  if (!isSquare) return;
  const cell = Math.max(1, Math.floor(220 / n));
  canvas.width = canvas.height = n * cell;
  const ink = getComputedStyle(root);
  const context = canvas.getContext("2d");
  rows.forEach((row, y) => [...row].forEach((digit, x) => {
    context.fillStyle = ink.getPropertyValue(digit === "1" ? "--color-accent" : "--background-fill-secondary");
    context.fillRect(x * cell, y * cell, cell - (cell > 3 ? 1 : 0), cell - (cell > 3 ? 1 : 0));
  }));
  canvas.setAttribute("aria-label", word("preview", { n }));
  canvas.title = word("preview", { n });
}

function complain() {
  for (const [name, { input, problem }] of parts) {
    const said = shared.problems?.[name] ?? "";
    if (problem.textContent !== said) {
      const alert = make("p", { role: "alert" });
      alert.textContent = said;
      problem.replaceChildren(...(said ? [alert] : []));
    }
    input.setAttribute("aria-invalid", String(Boolean(said)));
  }
}

// ---------------------------------------------------------------- life

function commit() {
  const values = Object.fromEntries([...parts].map(([name, { input }]) => [name, input.value]));
  props.value = { ...props.value, values };
  trigger("input");
}

watch("value", fill);
watch("shared", () => {
  shared = props.shared ?? shared;
  if (JSON.stringify(shared.fields) !== built) {
    build();
    fill();
  }
  complain();
});
build();
fill();
complain();
root.dataset.ready = "true";
