// The body of a function (element, trigger, props, server, upload, watch): Gradio runs it once per component.
// Tokens are text: they reach the page only through textContent, setAttribute and fillText.

const NOT_A_NUMBER = 65535;
const HIGHEST = 65534;
const SIDES = ["baseline", "operated", "difference"];
const TABLE_LIMIT = 64;
const TINY = 1e-4;

let shared = props.shared ?? {};   // {words, view}: what Python changes beside the value
const view = {
  layer: null, head: null, average: false, scale: "shared", specials: "shown", pinned: null, overview: "divergence",
};
let data = null;       // the decoded value
let current = null;    // the maps of the layer and head in view
let focus = null;      // {row, column}: positions among the tokens shown
let geometry = null;   // sizes of the three maps, in CSS pixels
let overview = null;   // sizes of the overview
let overviewKey = "";  // what the overview was drawn for
let cursor = null;     // {row, column} in the overview
let drawn = 0;
let scheduled = false;

// ---------------------------------------------------------------- words

const spoken = [];

function word(key, values = {}) {
  return (shared.words?.[key] ?? key).replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

function say(node, key, attribute) {
  spoken.push(() => (attribute ? node.setAttribute(attribute, word(key)) : (node.textContent = word(key))));
  return node;
}

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function place() {
  const { layer, head } = resolved();
  return view.average ? word("place_average", { layer }) : word("place", { layer, head });
}

// Control characters, direction overrides and lone surrogates become escapes; a bare space becomes visible.
function printable(token) {
  if (token === "") return "''";
  if (/^ +$/.test(token)) return "␣".repeat(token.length);
  return token.replace(
    /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\u00AD\u061C\u200B\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/gu,
    (character) => {
      const code = character.codePointAt(0);
      const short = { 9: "\\t", 10: "\\n", 13: "\\r" }[code];
      return short ?? (code < 256 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16).padStart(4, "0"));
    },
  );
}

function signed(number, digits) {
  const text = Math.abs(number).toFixed(digits);
  if (Number(text) === 0) return text;
  return (number < 0 ? "−" : "+") + text;
}

function weightText(number, digits = 4) {
  return Number.isNaN(number) ? word("nan") : number.toFixed(digits);
}

function differenceText(number) {
  return Number.isNaN(number) ? word("nan") : signed(number, 4);
}

// ---------------------------------------------------------------- value

function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

function decode(value) {
  if (!value || !value.tokens) return null;
  const labels = value.tokens.map(printable);
  return {
    ...value,
    size: labels.length,
    labels,
    repeated: new Set(labels.filter((label, i) => labels.indexOf(label) !== i)),
    baseline: new Uint16Array(bytesOf(value.baseline).buffer),
    operated: new Uint16Array(bytesOf(value.operated).buffer),
    noKeyBaseline: bytesOf(value.no_key_baseline),
    noKeyOperated: bytesOf(value.no_key_operated),
  };
}

function oneHead(codes, slot, head) {
  const cells = data.size * data.size;
  const start = (slot * data.heads + head) * cells;
  const step = data.scale / HIGHEST;
  const weights = new Float32Array(cells);
  for (let i = 0; i < cells; i++) {
    const code = codes[start + i];
    weights[i] = code === NOT_A_NUMBER ? NaN : code * step;
  }
  return weights;
}

function meanOfHeads(codes, slot) {
  const mean = new Float32Array(data.size * data.size);
  for (let head = 0; head < data.heads; head++) {
    oneHead(codes, slot, head).forEach((weight, i) => { mean[i] += weight / data.heads; });
  }
  return mean;
}

function hasNoKey(bits, slot, head, query) {
  const i = (slot * data.heads + head) * data.size + query;
  return (bits[i >> 3] >> (i & 7)) & 1;
}

// Queries without a permitted key; under "average", those that have none in any head.
function rowsWithoutKey(bits, slot, head) {
  const heads = view.average ? [...Array(data.heads).keys()] : [head];
  return data.tokens.map((_, query) => heads.every((h) => hasNoKey(bits, slot, h, query)));
}

function largestChange() {
  let best = { layer: data.captured[0] ?? 0, head: 0, value: 0 };
  data.divergence.forEach((row, slot) => row.forEach((value, head) => {
    if (value > best.value) best = { layer: data.captured[slot], head, value };
  }));
  return best;
}

// The layer and head to show: the chosen ones where they exist, else the ones that changed most.
function resolved() {
  const best = largestChange();
  const layer = data.captured.includes(view.layer) ? view.layer : best.layer;
  const fits = view.head !== null && view.head < data.heads;
  const head = fits ? view.head : layer === best.layer ? best.head : 0;
  return { layer, head, slot: data.captured.indexOf(layer) };
}

function visibleTokens() {
  const all = [...data.tokens.keys()];
  return view.specials === "hidden" ? all.filter((i) => data.kinds[i] === "word") : all;
}

function currentMaps() {
  const { layer, head, slot } = resolved();
  const read = (codes) => (view.average ? meanOfHeads(codes, slot) : oneHead(codes, slot, head));
  const baseline = read(data.baseline);
  const operated = read(data.operated);
  const noKey = {
    baseline: rowsWithoutKey(data.noKeyBaseline, slot, head),
    operated: rowsWithoutKey(data.noKeyOperated, slot, head),
  };
  noKey.difference = noKey.baseline.map((none, query) => none || noKey.operated[query]);
  const maps = { baseline, operated, difference: operated.map((weight, i) => weight - baseline[i]) };
  const shown = visibleTokens();
  return { layer, head, slot, maps, noKey, shown, ...limits(maps, shown, slot, head) };
}

function largest(values, shown) {
  let most = 0;
  for (const row of shown) {
    for (const column of shown) {
      const value = Math.abs(values[row * data.size + column]);
      if (value > most) most = value;
    }
  }
  return most;
}

// One maximum for baseline and operated together, one symmetric limit for the difference.
function limits(maps, shown, slot, head) {
  const joint = Math.max(largest(maps.baseline, shown), largest(maps.operated, shown));
  const change = largest(maps.difference, shown);
  const exact = view.average ? data.largest[slot] : [data.largest[slot][head]];
  const same = exact.every((value) => value === 0);
  const unit = view.scale === "unit";
  return {
    joint,
    top: unit ? 1 : joint || 1,
    reach: unit ? 1 : change < TINY ? 1 : change,
    flat: same ? "no_difference" : change < TINY && exact.every((v) => v !== null) ? "tiny_difference" : "",
  };
}

// ---------------------------------------------------------------- colours

// Stops are [lightness, chroma, hue] in OKLCH; lightness moves evenly, so equal steps look equal.
const RAMPS = {
  light: {
    weight: [[0.975, 0.012, 115], [0.75, 0.1, 178], [0.525, 0.11, 238], [0.3, 0.13, 280]],
    loss: [[0.965, 0, 250], [0.73, 0.09, 250], [0.48, 0.15, 256]],
    gain: [[0.965, 0, 52], [0.74, 0.11, 52], [0.5, 0.16, 38]],
    nan: "#cf6fae", hatch: "rgba(90, 90, 110, .75)",
  },
  dark: {
    weight: [[0.25, 0.035, 280], [0.48, 0.11, 250], [0.71, 0.11, 185], [0.95, 0.1, 108]],
    loss: [[0.27, 0, 254], [0.52, 0.12, 254], [0.8, 0.1, 240]],
    gain: [[0.27, 0, 42], [0.53, 0.12, 42], [0.82, 0.12, 62]],
    nan: "#b4508f", hatch: "rgba(200, 205, 220, .6)",
  },
};
const STEPS = 255;
const palettes = {};

function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map(encodeChannel);
}

function encodeChannel(linear) {
  const x = Math.min(1, Math.max(0, linear));
  return Math.round(255 * (x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055));
}

function ramp(stops, chroma = 1) {
  return Array.from({ length: STEPS + 1 }, (_, i) => {
    const at = (i / STEPS) * (stops.length - 1);
    const from = Math.min(stops.length - 2, Math.floor(at));
    const [l, c, h] = stops[from].map((x, k) => x + (stops[from + 1][k] - x) * (at - from));
    return oklch(l, c * chroma, h);
  });
}

function palette() {
  const mode = isDark() ? "dark" : "light";
  palettes[mode] ??= build(RAMPS[mode]);
  return palettes[mode];
}

function build(colours) {
  const diverging = (chroma) => [...ramp(colours.loss, chroma).slice(1).reverse(), ...ramp(colours.gain, chroma)];
  const nan = [1, 3, 5].map((i) => parseInt(colours.nan.slice(i, i + 2), 16));
  return {
    ...colours,
    nanColour: nan,
    weight: { full: ramp(colours.weight), grey: ramp(colours.weight, 0) },
    difference: { full: diverging(1), grey: diverging(0) },
  };
}

function isDark() {
  return element.closest(".dark") !== null;
}

function css(rgb) {
  return `rgb(${rgb.join(",")})`;
}

// A function (value, grey) -> [r, g, b] for one of the three maps.
function colouring(side) {
  const { weight, difference, nanColour } = palette();
  const isDifference = side === "difference";
  const table = isDifference ? difference : weight;
  const limit = isDifference ? current.reach : current.top;
  const flat = isDifference && current.flat;
  return (value, grey) => {
    if (Number.isNaN(value)) return nanColour;
    const ratio = flat ? 0 : Math.max(isDifference ? -1 : 0, Math.min(1, value / limit));
    return table[grey ? "grey" : "full"][Math.round(ratio * STEPS) + (isDifference ? STEPS : 0)];
  };
}

function inkOn([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "rgba(20, 24, 36, .9)" : "rgba(255, 255, 255, .95)";
}

// One pixel per cell, to be scaled up or down.
function pixels(size, colourAt) {
  const sheet = make("canvas");
  sheet.width = sheet.height = Math.max(1, size);
  const context = sheet.getContext("2d");
  const image = context.createImageData(sheet.width, sheet.height);
  for (let row = 0, i = 0; row < size; row++) {
    for (let column = 0; column < size; column++, i += 4) {
      const [red, green, blue] = colourAt(row, column);
      image.data[i] = red;
      image.data[i + 1] = green;
      image.data[i + 2] = blue;
      image.data[i + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return sheet;
}

// ---------------------------------------------------------------- page

const unique = Math.random().toString(36).slice(2, 8);
const root = element.querySelector(".av");
const ui = buildPage();

function stepper(name) {
  const select = make("select", { "data-control": name });
  const step = (by, symbol, key) => {
    const button = say(make("button", { type: "button", tabindex: "-1" }, symbol), key, "aria-label");
    button.addEventListener("click", () => moveSelect(select, by));
    return button;
  };
  const label = make("label", {}, say(make("span"), name), select);
  select.addEventListener("change", () => chooseFrom(name, select.value));
  return {
    select,
    node: make("div", { class: "av-stepper" }, step(-1, "‹", `previous_${name}`), label, step(1, "›", `next_${name}`)),
  };
}

function moveSelect(select, by) {
  let next = select.selectedIndex + by;
  while (select.options[next]?.disabled) next += by;
  if (!select.options[next]) return;
  select.selectedIndex = next;
  select.dispatchEvent(new Event("change"));
}

function chooseFrom(name, text) {
  const { layer, head } = resolved();
  if (name === "layer") setView({ layer: Number(text), head });
  else if (text === "average") setView({ layer, average: true });
  else setView({ layer, head: Number(text), average: false });
}

function choice(name, options) {
  const group = make("fieldset", { class: "av-choice", "data-control": name });
  group.append(say(make("legend"), name === "overview" ? "overview_by" : name));
  for (const option of options) {
    const input = make("input", { type: "radio", name: `${name}-${unique}`, value: option });
    input.addEventListener("change", () => setView({ [name]: option }));
    group.append(make("label", {}, input, say(make("span"), `${name}_${option}`)));
  }
  return group;
}

function panel(side) {
  const canvas = make("canvas", { class: "av-canvas", role: "img", "data-side": side });
  const bands = Object.fromEntries(
    ["row", "column", "pin", "cell"].map((name) => [name, make("div", { class: `av-band av-${name}` })]),
  );
  const message = make("div", { class: "av-message" });
  const stage = make("div", { class: "av-stage" }, canvas, ...Object.values(bands), message);
  const title = say(make("span", { class: "av-title" }), side);
  const caption = make("figcaption", {}, title);
  if (side === "difference") caption.append(say(make("span", { class: "av-detail" }), "difference_detail"));
  canvas.addEventListener("pointermove", (event) => hover(event, side));
  canvas.addEventListener("pointerleave", () => setFocus(null));
  canvas.addEventListener("click", (event) => clickMap(event, side));
  return { canvas, bands, message, node: make("figure", { class: `av-panel av-${side}` }, caption, stage) };
}

function legend(name) {
  const bar = make("div", { class: "av-bar" });
  const ticks = make("div", { class: "av-ticks" });
  const text = make("div", { class: "av-legend-text" });
  return { bar, ticks, text, node: make("div", { class: `av-legend av-legend-${name}` }, bar, ticks, text) };
}

function buildPage() {
  const page = { layer: stepper("layer"), head: stepper("head"), panels: {} };
  page.jump = make("button", { type: "button", class: "av-jump" });
  page.jump.addEventListener("click", () => {
    const { layer, head } = largestChange();
    setView({ layer, head, average: false });
  });
  page.scale = choice("scale", ["shared", "unit"]);
  page.specials = choice("specials", ["shown", "greyed", "hidden"]);
  page.where = make("div", { class: "av-where" }, page.layer.node, page.head.node, page.jump);
  page.options = make("div", { class: "av-options" }, page.scale, page.specials);
  page.bar = make("div", { class: "av-toolbar" }, page.where, page.options);
  page.readout = make("div", { class: "av-readout", "aria-live": "polite", "aria-atomic": "true" });
  for (const side of SIDES) page.panels[side] = panel(side);
  page.weightLegend = legend("weight");
  page.differenceLegend = legend("difference");
  page.maps = make(
    "div", { class: "av-maps", tabindex: "0", role: "application" },
    page.panels.baseline.node, page.panels.operated.node, page.weightLegend.node,
    page.panels.difference.node, page.differenceLegend.node,
  );
  page.maps.addEventListener("keydown", keyOnMaps);
  page.maps.addEventListener("focus", () => { if (page.maps.matches(":focus-visible")) setFocus(focus ?? { row: 0, column: 0 }); });
  page.maps.addEventListener("blur", () => setFocus(null));
  page.swatches = make("div", { class: "av-swatches" });
  page.notes = make("div", { class: "av-notes" });
  Object.assign(page, buildOverview(), buildTable());
  page.empty = say(make("p", { class: "av-empty" }), "empty");
  page.result = make(
    "div", { class: "av-result" },
    page.bar, page.readout, page.maps, page.swatches, page.notes, page.overviewNode, page.details,
  );
  root.replaceChildren(page.empty, page.result);
  return page;
}

function buildOverview() {
  const heads = make("canvas", { class: "av-canvas", role: "img" });
  const here = make("div", { class: "av-band av-here" });
  const ring = make("div", { class: "av-band av-cursor" });
  const headsBox = make("div", { class: "av-stage av-heads", tabindex: "0", role: "application" }, heads, here, ring);
  headsBox.addEventListener("keydown", keyOnOverview);
  headsBox.addEventListener("focus", () => { if (headsBox.matches(":focus-visible")) setCursor(cursor ?? hereInOverview()); });
  headsBox.addEventListener("blur", () => setCursor(null));
  heads.addEventListener("pointermove", (event) => setCursor(overviewCell(event)));
  heads.addEventListener("pointerleave", () => setCursor(null));
  heads.addEventListener("click", (event) => openHead(overviewCell(event)));
  const modes = choice("overview", ["divergence", "baseline", "operated"]);
  const headsText = make("div", { class: "av-heads-text", "aria-live": "polite" });
  const headsLegend = legend("heads");
  const title = say(make("h3"), "overview");
  const top = make("div", { class: "av-overview-top" }, title, modes, headsLegend.node);
  const overviewNode = make("section", { class: "av-overview" }, top, headsText, headsBox);
  return { heads, here, ring, headsBox, modes, headsText, headsLegend, overviewNode };
}

function buildTable() {
  const tableBox = make("div", { class: "av-table", tabindex: "0", role: "region" });
  const details = make("details", { class: "av-details" }, say(make("summary"), "table"), tableBox);
  say(tableBox, "table", "aria-label");
  details.addEventListener("toggle", drawTable);
  return { tableBox, details };
}

// ---------------------------------------------------------------- view

function currentView() {
  if (!data) return { ...view };
  const { layer, head } = resolved();
  return { ...view, layer, head };
}

// A person's change: draw, and tell Python.
function setView(patch) {
  Object.assign(view, patch);
  schedule();
  trigger("view_change", currentView());
}

// A change from Python: draw, and tell nobody.
function takeView(patch) {
  for (const name of Object.keys(view)) if (patch && name in patch) view[name] = patch[name];
}

function pin(token) {
  setView({ pinned: view.pinned === token ? null : token });
}

// ---------------------------------------------------------------- drawing

function schedule() {
  if (scheduled) return;
  scheduled = true;
  requestAnimationFrame(() => { scheduled = false; draw(); });
}

function draw() {
  root.classList.toggle("av-has-result", data !== null);
  if (!data) return stampRoot("");
  if (!ui.result.clientWidth) return;  // in a closed tab: the resize observer calls again
  const start = performance.now();
  current = currentMaps();
  if (view.pinned !== null && !(view.pinned < data.size)) view.pinned = null;
  geometry = measure();
  for (const side of SIDES) drawPanel(side);
  drawLegends();
  syncControls();
  drawSwatches();
  drawNotes();
  drawOverview();
  drawTable();
  placeBands();
  showReadout();
  root.dataset.drawMs = (performance.now() - start).toFixed(1);
  stampRoot(data.stamp);
}

function stampRoot(stamp) {
  drawn += 1;
  root.dataset.view = JSON.stringify(currentView());
  root.dataset.stamp = stamp;
  root.dataset.drawn = drawn;
}

function fontOf(size, weight = 400) {
  return `${weight} ${size}px ${getComputedStyle(root).fontFamily}`;
}

const ruler = make("canvas").getContext("2d");

function textWidth(text, size) {
  ruler.font = fontOf(size);
  return ruler.measureText(text).width;
}

// Sizes in CSS pixels: the first map carries the query labels when the three stand side by side.
function measure() {
  const total = ui.maps.clientWidth;
  const wide = total >= 600;
  const count = Math.max(1, current.shown.length);
  const gap = 18;
  const widest = Math.max(0, ...current.shown.map((token) => textWidth(data.labels[token], 12)));
  const gutter = Math.ceil(Math.min(Math.max(widest + 8, 54), wide ? 120 : total * 0.28));
  const room = wide ? (total - gutter - 2 * gap) / 3 : total - gutter;
  const map = Math.floor(Math.max(40, Math.min(room, count * 56, 520)));
  const cell = map / count;
  const flatKeys = widest + 6 <= cell;
  const top = flatKeys ? 32 : Math.ceil(Math.min(Math.max(widest + 8, 34), 110));
  const font = Math.max(9, Math.min(12, cell * 0.85));
  root.classList.toggle("av-wide", wide);
  root.style.setProperty("--av-gutter", `${gutter}px`);
  root.style.setProperty("--av-map", `${map}px`);
  root.style.setProperty("--av-top", `${top}px`);
  return { wide, count, gutter, map, cell, flatKeys, top, font, every: Math.ceil((font + 1) / cell) };
}

function leftOf(side) {
  return geometry.wide && side !== "baseline" ? 0 : geometry.gutter;
}

// Sizes a canvas for this screen's pixel density; one unit is one CSS pixel.
function prepare(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.direction = "ltr";
  return context;
}

function isMuted(token) {
  return view.specials === "greyed" && data.kinds[token] !== "word";
}

function drawPanel(side) {
  const { canvas, message } = ui.panels[side];
  const left = leftOf(side);
  const { map, top, count } = geometry;
  const context = prepare(canvas, left + map, top + map);
  const { shown } = current;
  const values = current.maps[side];
  const colour = colouring(side);
  const colourAt = (row, column) => {
    const grey = isMuted(shown[row]) || isMuted(shown[column]);
    return colour(values[shown[row] * data.size + shown[column]], grey);
  };
  context.imageSmoothingEnabled = false;
  if (shown.length) context.drawImage(pixels(count, colourAt), left, top, map, map);
  drawCellGaps(context, left);
  hatchRows(context, left, current.noKey[side]);
  if (count <= 12) drawNumbers(context, left, side, colourAt);
  drawKeyLabels(context, left);
  if (left) drawQueryLabels(context, left);
  message.textContent = side === "difference" && current.flat ? word(current.flat) : "";
  canvas.setAttribute("aria-label", `${word(side)}, ${place()}`);
}

function drawCellGaps(context, left) {
  const { cell, count, top, map } = geometry;
  if (cell < 12) return;
  context.fillStyle = getComputedStyle(root).getPropertyValue("--av-paper");
  for (let i = 1; i < count; i++) {
    context.fillRect(left + i * cell - 0.5, top, 1, map);
    context.fillRect(left, top + i * cell - 0.5, map, 1);
  }
}

function hatchRows(context, left, noKey) {
  const { cell, top, map } = geometry;
  context.strokeStyle = palette().hatch;
  context.lineWidth = 1;
  current.shown.forEach((token, row) => {
    if (!noKey[token]) return;
    context.save();
    context.beginPath();
    context.rect(left, top + row * cell, map, cell);
    context.clip();
    context.beginPath();
    for (let x = -cell; x < map; x += 6) {
      context.moveTo(left + x, top + (row + 1) * cell);
      context.lineTo(left + x + cell, top + row * cell);
    }
    context.stroke();
    context.restore();
  });
}

function drawNumbers(context, left, side, colourAt) {
  const { cell, top } = geometry;
  const size = Math.min(12, cell * 0.4);
  if (size < 8 || (side === "difference" && current.flat)) return;
  context.font = fontOf(size);
  context.textAlign = "center";
  context.textBaseline = "middle";
  const isSigned = side === "difference";
  const digits = !isSigned || context.measureText("+.88").width <= cell - 2 ? 2 : 1;   // a sign is never left out
  current.shown.forEach((query, row) => current.shown.forEach((key, column) => {
    const value = current.maps[side][query * data.size + key];
    context.fillStyle = inkOn(colourAt(row, column));
    context.fillText(cellText(value, isSigned, digits), left + (column + 0.5) * cell, top + (row + 0.5) * cell + 0.5);
  }));
}

function cellText(value, isSigned, digits) {
  if (Number.isNaN(value)) return "–";
  if (Math.abs(value) < 0.5 * 10 ** -digits) return "0";
  const text = isSigned ? signed(value, digits) : Math.abs(value).toFixed(digits);
  return text.replace(/0\./, ".");
}

function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  const characters = Array.from(text);
  while (characters.length && context.measureText(`${characters.join("")}…`).width > width) characters.pop();
  return `${characters.join("")}…`;
}

function labelStyle(context, token) {
  const style = getComputedStyle(root);
  const isWord = data.kinds[token] === "word";
  context.font = fontOf(geometry.font, token === view.pinned ? 700 : 400);
  context.fillStyle = style.getPropertyValue(isWord ? "--av-ink" : "--av-muted");
}

function isLabelled(position) {
  return position % geometry.every === 0 || current.shown[position] === view.pinned;
}

function drawQueryLabels(context, left) {
  const { cell, top } = geometry;
  context.textAlign = "right";
  context.textBaseline = "middle";
  current.shown.forEach((token, row) => {
    if (!isLabelled(row)) return;
    labelStyle(context, token);
    context.fillText(fitted(context, data.labels[token], left - 8), left - 6, top + (row + 0.5) * cell);
  });
  context.font = fontOf(10);
  context.fillStyle = getComputedStyle(root).getPropertyValue("--av-muted");
  context.textBaseline = "alphabetic";
  context.fillText(`${word("key")} →`, left - 6, top - 20);
  context.fillText(`${word("query")} ↓`, left - 6, top - 8);
}

function drawKeyLabels(context, left) {
  const { cell, top, map, flatKeys, font } = geometry;
  current.shown.forEach((token, column) => {
    if (!isLabelled(column)) return;
    labelStyle(context, token);
    const isUpright = flatKeys || (Array.from(data.labels[token]).length === 1 && font < cell);
    context.textBaseline = isUpright ? "alphabetic" : "middle";
    context.textAlign = isUpright ? "center" : "left";
    context.save();
    const middle = Math.min(Math.max((column + 0.5) * cell, font / 2), map - font / 2);
    context.translate(left + middle, top - 6);
    if (!isUpright) context.rotate(-Math.PI / 2);
    context.fillText(fitted(context, data.labels[token], isUpright ? cell : top - 8), 0, 0);
    context.restore();
  });
}

// ---------------------------------------------------------------- legends

function gradient(colours) {
  const stops = Array.from({ length: 17 }, (_, i) => css(colours[Math.round((i / 16) * (colours.length - 1))]));
  return `linear-gradient(to right, ${stops.join(", ")})`;
}

function fillLegend(target, colours, ticks, text) {
  target.bar.style.background = gradient(colours);
  target.ticks.replaceChildren(...ticks.map((tick) => make("span", {}, tick)));
  target.text.textContent = text;
}

function tick(number) {
  return number === 0 ? "0" : number >= 0.0995 ? number.toFixed(2) : number.toPrecision(2);
}

function drawLegends() {
  const { weight, difference } = palette();
  const { top, reach, joint } = current;
  const end = joint > top ? `≥ ${tick(top)}` : tick(top);
  const half = tick(reach / 2);
  fillLegend(ui.weightLegend, weight.full, ["0", tick(top / 2), end], word("legend_shared"));
  const ticks = current.flat ? ["", "0", ""] : [`−${tick(reach)}`, `−${half}`, "0", `+${half}`, `+${tick(reach)}`];
  const colours = current.flat ? [difference.full[STEPS]] : difference.full;
  fillLegend(ui.differenceLegend, colours, ticks, "");
}

function drawSwatches() {
  const { shown, noKey, maps } = current;
  const isNan = (token) => shown.some((key) => Number.isNaN(maps.difference[token * data.size + key]));
  const entries = [];
  if (shown.some((token) => noKey.difference[token])) entries.push("no_key");
  if (shown.some(isNan)) entries.push("nan");
  if (shown.some(isMuted)) entries.push("special_swatch");
  ui.swatches.replaceChildren(...entries.map((key) => {
    const patch = make("i", { class: `av-swatch av-swatch-${key}`, "aria-hidden": "true" });
    if (key === "nan") patch.style.background = palette().nan;
    return make("span", { "data-swatch": key }, patch, word(key));
  }));
}

function drawNotes() {
  const lines = data.notes.map((note) => note[shared.words?.lang] ?? note.en);
  const hidden = data.size - current.shown.length;
  if (hidden) lines.unshift(word("hidden_note", { count: hidden }));
  ui.notes.replaceChildren(...lines.map((line) => make("p", {}, line)));
}

// ---------------------------------------------------------------- controls

function option(value, text, isDisabled = false) {
  const node = make("option", { value }, text);
  node.disabled = isDisabled;
  return node;
}

function syncControls() {
  const layers = [...Array(data.layers).keys()].map((layer) => {
    const isMissing = !data.captured.includes(layer);
    return option(layer, isMissing ? `${layer} · ${word("not_captured")}` : String(layer), isMissing);
  });
  const heads = [...Array(data.heads).keys()].map((head) => option(head, String(head)));
  fillSelect(ui.layer.select, layers, current.layer);
  fillSelect(ui.head.select, [option("average", word("average")), ...heads], view.average ? "average" : current.head);
  for (const name of ["scale", "specials", "modes"]) checkRadio(ui[name], view[name === "modes" ? "overview" : name]);
  const best = largestChange();
  ui.jump.hidden = best.value === 0;
  ui.jump.textContent = `${word("largest_change")} L${best.layer} H${best.head}`;
  ui.jump.title = word("largest_change_help", best);
  ui.maps.setAttribute("aria-label", word("maps_help", { place: place() }));
}

function fillSelect(select, options, chosen) {
  const key = options.map((node) => node.value + node.textContent).join("|");
  if (select.dataset.filled !== key) {
    select.replaceChildren(...options);
    select.dataset.filled = key;
  }
  select.value = String(chosen);
}

function checkRadio(group, chosen) {
  for (const input of group.querySelectorAll("input")) input.checked = input.value === chosen;
}

// ---------------------------------------------------------------- pointing, pinning, keys

function cellAt(event, side) {
  const box = ui.panels[side].canvas.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left - leftOf(side)) / geometry.cell);
  const row = Math.floor((event.clientY - box.top - geometry.top) / geometry.cell);
  const within = (position) => position >= 0 && position < current.shown.length;
  return { row: within(row) ? row : null, column: within(column) ? column : null };
}

function hover(event, side) {
  if (!current) return;
  const { row, column } = cellAt(event, side);
  const label = row === null ? column : column === null ? row : null;
  ui.panels[side].canvas.title = label === null ? "" : data.labels[current.shown[label]];
  setFocus(row === null || column === null ? null : { row, column });
}

function clickMap(event, side) {
  const { row } = cellAt(event, side);
  if (row !== null) pin(current.shown[row]);
}

function setFocus(cell) {
  focus = cell;
  placeBands();
  showReadout();
}

const MOVES = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

function moved(from, key, rows, columns) {
  if (key === "Home") return { ...from, column: 0 };
  if (key === "End") return { ...from, column: columns - 1 };
  const [down, right] = MOVES[key];
  return {
    row: Math.max(0, Math.min(rows - 1, from.row + down)),
    column: Math.max(0, Math.min(columns - 1, from.column + right)),
  };
}

function isMove(event) {
  return event.key in MOVES || event.key === "Home" || event.key === "End";
}

function keyOnMaps(event) {
  if (!current?.shown.length || event.ctrlKey || event.metaKey || event.altKey) return;
  const count = current.shown.length;
  if (isMove(event)) setFocus(focus ? moved(focus, event.key, count, count) : { row: 0, column: 0 });
  else if (event.key === "Enter" && focus) pin(current.shown[focus.row]);
  else if (event.key === "Escape" && view.pinned !== null) setView({ pinned: null });
  else return;
  event.preventDefault();
}

function setBox(node, box) {
  node.hidden = box === null;
  if (box === null) return;
  const [left, top, width, height] = box;
  Object.assign(node.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
}

function placeBands() {
  if (!geometry) return;
  const { cell, top, map } = geometry;
  const pinnedRow = current.shown.indexOf(view.pinned);
  const isFocused = focus && focus.row < current.shown.length && focus.column < current.shown.length;
  for (const side of SIDES) {
    const left = leftOf(side);
    const { row, column, pin: pinned, cell: spot } = ui.panels[side].bands;
    setBox(row, isFocused ? [left, top + focus.row * cell, map, cell] : null);
    setBox(column, isFocused ? [left + focus.column * cell, top, cell, map] : null);
    setBox(spot, isFocused ? [left + focus.column * cell, top + focus.row * cell, cell, cell] : null);
    setBox(pinned, pinnedRow >= 0 ? [left, top + pinnedRow * cell, map, cell] : null);
  }
}

// ---------------------------------------------------------------- readout

function part(name, text, className = "") {
  return make("span", { "data-part": name, class: className }, text);
}

// A token that occurs more than once says which one it is.
function tokenNode(token) {
  const name = make("bdi", { class: "av-token" }, data.labels[token]);
  if (!data.repeated.has(data.labels[token])) return name;
  return make("span", { class: "av-one" }, name, make("span", { class: "av-at" }, word("token_at", { position: token })));
}

function labelled(name, text) {
  return make("span", { class: "av-value" }, make("span", { class: "av-key" }, word(name)), " ", part(name, text, "av-number"));
}

function showReadout() {
  if (!current) return;
  ui.readout.replaceChildren(...readout());
}

function readout() {
  const query = focus ? current.shown[focus.row] : undefined;
  const key = focus ? current.shown[focus.column] : undefined;
  if (query !== undefined && key !== undefined) return cellReadout(query, key);
  if (current.shown.includes(view.pinned)) return pinnedReadout(view.pinned);
  return [part("hint", word("hint"), "av-hint")];
}

function cellReadout(query, key) {
  const i = query * data.size + key;
  const { baseline, operated, difference } = current.maps;
  const pair = make("span", { "data-part": "pair", class: "av-pair" }, tokenNode(query), " → ", tokenNode(key));
  const nodes = [
    pair, labelled("baseline", weightText(baseline[i])), labelled("operated", weightText(operated[i])),
    labelled("difference", differenceText(difference[i])),
  ];
  if (current.noKey.difference[query]) nodes.push(part("no_key", word("no_key"), "av-hint"));
  return nodes;
}

function strongest(map, query, count) {
  const weights = current.shown.map((key) => ({ key, weight: map[query * data.size + key] }));
  return weights.filter(({ weight }) => weight > 0).sort((a, b) => b.weight - a.weight).slice(0, count);
}

function pinnedReadout(query) {
  const list = (side) => {
    const node = make("span", { class: "av-value", "data-part": `top-${side}` }, make("span", { class: "av-key" }, word(side)));
    for (const { key, weight } of strongest(current.maps[side], query, 3)) {
      node.append(" ", tokenNode(key), " ", make("span", { class: "av-number" }, weight.toFixed(2)));
    }
    return node;
  };
  const head = make("span", { "data-part": "pinned", class: "av-pair" }, word("pinned"), " ", tokenNode(query), " →");
  const release = make("button", { type: "button", class: "av-unpin" }, "×");
  release.setAttribute("aria-label", word("unpin"));
  release.addEventListener("click", () => setView({ pinned: null }));
  return [head, list("baseline"), list("operated"), release];
}

// ---------------------------------------------------------------- overview

function overviewTop() {
  if (view.overview === "divergence") return Math.max(0, ...data.divergence.flat().filter((value) => value !== null));
  return view.scale === "unit" ? 1 : highestWeight();
}

function highestWeight() {
  data.highest ??= [data.baseline, data.operated].reduce((most, codes) => {
    for (const code of codes) if (code !== NOT_A_NUMBER && code > most) most = code;
    return most;
  }, 0) * data.scale / HIGHEST;
  return data.highest;
}

function drawOverview() {
  const width = ui.overviewNode.clientWidth;
  const key = [data.stamp, width, isDark(), view.overview, view.scale, view.specials, shared.words?.lang, devicePixelRatio].join();
  if (key !== overviewKey) paintOverview(width);
  overviewKey = key;
  const { slot, head } = current;
  setBox(ui.here, view.average ? rowBox(current.layer) : thumbBox({ row: current.layer, column: head }));
  ui.here.dataset.slot = slot;
  setCursor(cursor);
}

function paintOverview(width) {
  const left = 34;
  const top = 18;
  const size = Math.floor(Math.min((width - left) / data.heads, Math.max(28, Math.min(52, 600 / data.layers))));
  overview = { left, top, size, limit: overviewTop() };
  const context = prepare(ui.heads, left + size * data.heads, top + size * data.layers);
  drawOverviewLabels(context);
  for (let layer = 0; layer < data.layers; layer++) {
    const slot = data.captured.indexOf(layer);
    for (let head = 0; head < data.heads; head++) drawThumb(context, layer, slot, head);
  }
  const colours = palette().weight.full;
  const name = word(view.overview === "divergence" ? "divergence" : "weight");
  if (overview.limit) fillLegend(ui.headsLegend, colours, ["0", tick(overview.limit)], name);
  else fillLegend(ui.headsLegend, colours.slice(0, 1), ["0"], name);
  ui.headsBox.setAttribute("aria-label", word("overview_help"));
  ui.heads.setAttribute("aria-label", `${word("overview")}: ${word(`overview_${view.overview}`)}`);
}

function drawOverviewLabels(context) {
  const { left, top, size } = overview;
  context.font = fontOf(size < 22 ? 9 : 10);
  context.fillStyle = getComputedStyle(root).getPropertyValue("--av-muted");
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (let layer = 0; layer < data.layers; layer++) context.fillText(`L${layer}`, left - 6, top + (layer + 0.5) * size);
  context.textAlign = "center";
  context.textBaseline = "alphabetic";
  for (let head = 0; head < data.heads; head++) context.fillText(`${size < 22 ? "" : "H"}${head}`, left + (head + 0.5) * size, top - 6);
}

function thumbBox({ row, column }) {
  const { left, top, size } = overview;
  return [left + column * size, top + row * size, size, size];
}

function rowBox(layer) {
  const { left, top, size } = overview;
  return [left, top + layer * size, size * data.heads, size];
}

function drawThumb(context, layer, slot, head) {
  const [x, y, size] = thumbBox({ row: layer, column: head });
  const inner = size - 2;
  if (slot < 0) return drawMissing(context, x + 1, y + 1, inner);
  if (view.overview === "divergence") return drawDivergence(context, x + 1, y + 1, inner, data.divergence[slot][head]);
  const { shown } = current;
  const codes = data[view.overview];
  const start = (slot * data.heads + head) * data.size * data.size;
  const table = palette().weight.full;
  const factor = (STEPS * data.scale) / HIGHEST / (overview.limit || 1);
  const sheet = pixels(shown.length, (row, column) => {
    const code = codes[start + shown[row] * data.size + shown[column]];
    return code === NOT_A_NUMBER ? palette().nanColour : table[Math.min(STEPS, Math.round(code * factor))];
  });
  context.imageSmoothingEnabled = shown.length > inner * (window.devicePixelRatio || 1);
  context.drawImage(sheet, x + 1, y + 1, inner, inner);
}

function drawDivergence(context, x, y, size, value) {
  const { weight, nanColour } = palette();
  const colour = value === null ? nanColour : weight.full[Math.round((STEPS * value) / (overview.limit || 1))];
  context.fillStyle = css(colour);
  context.fillRect(x, y, size, size);
  if (size < 30 || !value) return;
  context.font = fontOf(10);
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillStyle = inkOn(colour);
  context.fillText(value < 0.0005 ? "<.001" : value.toFixed(3).replace(/^0/, ""), x + size / 2, y + size / 2);
}

function drawMissing(context, x, y, size) {
  context.fillStyle = getComputedStyle(root).getPropertyValue("--av-missing");
  context.fillRect(x, y, size, size);
}

function overviewCell(event) {
  if (!overview) return null;
  const box = ui.heads.getBoundingClientRect();
  const column = Math.floor((event.clientX - box.left - overview.left) / overview.size);
  const row = Math.floor((event.clientY - box.top - overview.top) / overview.size);
  const isInside = row >= 0 && column >= 0 && row < data.layers && column < data.heads;
  return isInside ? { row, column } : null;
}

function hereInOverview() {
  return { row: current.layer, column: current.head };
}

function setCursor(cell) {
  cursor = cell && cell.row < data.layers && cell.column < data.heads ? cell : null;
  setBox(ui.ring, cursor ? thumbBox(cursor) : null);
  ui.headsText.textContent = cursor ? cursorText() : word("overview_hint");
}

function cursorText() {
  const at = word("place", { layer: cursor.row, head: cursor.column });
  const slot = data.captured.indexOf(cursor.row);
  if (slot < 0) return `${at} · ${word("not_captured")}`;
  const value = data.divergence[slot][cursor.column];
  return `${at} · ${word("divergence")} ${value === null ? word("nan") : value.toFixed(4)}`;
}

function openHead(cell) {
  if (!cell || !data.captured.includes(cell.row)) return;
  setView({ layer: cell.row, head: cell.column, average: false });
  ui.bar.scrollIntoView({ block: "nearest" });
}

function keyOnOverview(event) {
  if (!data || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isMove(event)) setCursor(moved(cursor ?? hereInOverview(), event.key, data.layers, data.heads));
  else if (event.key === "Enter" || event.key === " ") openHead(cursor);
  else return;
  event.preventDefault();
}

// ---------------------------------------------------------------- table

function drawTable() {
  if (!ui.details.open || !current) return;
  const shown = current.shown.slice(0, TABLE_LIMIT);
  const caption = make("caption", {}, word("table_caption", { place: place() }));
  if (shown.length < current.shown.length) caption.append(" ", word("table_cut", { count: TABLE_LIMIT }));
  const corner = make("td", {}, `${word("query")} ↓  ${word("key")} →`);
  const columns = shown.map((key) => make("th", { scope: "col" }, tokenNode(key)));
  const head = make("thead", {}, make("tr", {}, corner, ...columns));
  const body = make("tbody", {}, ...shown.map((query) => tableRow(query, shown)));
  ui.tableBox.replaceChildren(make("table", {}, caption, head, body));
}

function tableRow(query, shown) {
  const { baseline, operated } = current.maps;
  const cells = shown.map((key) => {
    const i = query * data.size + key;
    return make("td", {}, `${weightText(baseline[i])} → ${weightText(operated[i])}`);
  });
  return make("tr", {}, make("th", { scope: "row" }, tokenNode(query)), ...cells);
}

// ---------------------------------------------------------------- life

function relabel() {
  spoken.forEach((speak) => speak());
  overviewKey = "";
  root.lang = shared.words?.lang === "zh" ? "zh-CN" : "en";
}

function takeValue() {
  const pinnedToken = data?.tokens[view.pinned];
  const isUpdate = data !== null;
  data = decode(props.value);
  current = null;
  geometry = null;
  overviewKey = "";
  if (isUpdate && data?.tokens[view.pinned] !== pinnedToken) view.pinned = null;
}

function takeShared() {
  const before = shared;
  shared = props.shared ?? before;
  const differs = (name) => JSON.stringify(shared[name]) !== JSON.stringify(before[name]);
  if (differs("view")) takeView(shared.view);
  if (differs("words")) relabel();
  schedule();
}

// Calls `schedule` for as long as this component is on the page.
function follow() {
  const whileHere = (act) => () => { if (element.isConnected) act(); else stop(); };
  const sizes = new ResizeObserver(whileHere(schedule));
  const theme = new MutationObserver(whileHere(schedule));
  const onResize = whileHere(schedule);
  const stop = () => {
    sizes.disconnect();
    theme.disconnect();
    window.removeEventListener("resize", onResize);
  };
  sizes.observe(root);
  for (const node of [document.documentElement, document.body]) {
    theme.observe(node, { attributes: true, attributeFilter: ["class"] });
  }
  window.addEventListener("resize", onResize);
  document.fonts?.ready.then(schedule);
}

watch("value", () => { takeValue(); schedule(); });
watch("shared", takeShared);
takeValue();
takeView(shared.view);
relabel();
follow();
draw();
