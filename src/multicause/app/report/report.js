"use strict";
(() => {
  const contents = JSON.parse(document.getElementById("contents").textContent);
  const { components, rows, kind } = contents;
  const flat = kind === "table" || kind === "waveform";
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);

  // ------------------------------------------------------------------ small helpers

  /** An element with properties and children; text is never read as HTML. */
  function make(tag, properties = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(properties)) {
      if (name in element) element[name] = value;
      else element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  const number = (value) => (value === null ? "–" : Number(value.toPrecision(4)).toString().replace("-", "−"));
  const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(Math.abs(value) < 0.0995 ? 1 : 0)} %`.replace("-", "−"));
  const activityName = contents.probabilities ? "activity" : "mean size";
  const activityText = (h) => (contents.probabilities ? percent : number)(components.activity[h]);

  function bytes(text) {
    const raw = atob(text);
    const found = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i += 1) found[i] = raw.charCodeAt(i);
    return found;
  }

  /** Values of one picture out of an encoded array. */
  function decoder(source, text) {
    const data = bytes(text);
    const size = source.shape[0] * source.shape[1];
    return (index) => {
      const low = source.low[index];
      const step = (source.high[index] - low) / 255;
      return Float64Array.from(data.subarray(index * size, (index + 1) * size), (level) => low + step * level);
    };
  }
  const componentValues = decoder(components, components.bytes);
  const rowValues = decoder(rows, rows.bytes);
  const reconstruction = rows.reconstructions === null ? null : decoder(rows, rows.reconstructions);

  // ------------------------------------------------------------------ drawing

  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const heat = ["#07060f", "#3b0f6f", "#8c2981", "#dd4968", "#fd9f6c", "#fbfcbf"].map(channels);
  const mix = (a, b, t) => a.map((value, i) => value + (b[i] - value) * t);

  const palettes = new Map();
  /** 256 colours as pixels: signed values around a neutral middle, others from black to white. */
  function palette(signed) {
    const key = `${signed} ${root.dataset.theme}`;
    if (palettes.has(key)) return palettes.get(key);
    const [negative, middle, positive] = ["--negative", "--middle", "--positive"].map((name) => channels(colour(name)));
    const found = new Uint8ClampedArray(4 * 256);
    for (let i = 0; i < 256; i += 1) {
      const t = i / 255;
      let shade = [255 * t, 255 * t, 255 * t];
      if (signed) shade = t < 0.5 ? mix(negative, middle, 2 * t) : mix(middle, positive, 2 * t - 1);
      else if (kind === "spectrogram") {
        const at = Math.min(heat.length - 2, Math.floor(t * (heat.length - 1)));
        shade = mix(heat[at], heat[at + 1], t * (heat.length - 1) - at);
      }
      found.set([...shade, 255], 4 * i);
    }
    palettes.set(key, new Uint32Array(found.buffer));
    return palettes.get(key);
  }

  function drawImage(canvas, values, shape, low, high, signed) {
    const [height, width] = shape;
    canvas.width = width;
    canvas.height = height;
    // Frequency and time have no common unit, so a spectrogram may have any form.
    canvas.style.aspectRatio = kind === "spectrogram" ? "1 / 1" : `${width} / ${height}`;
    const [from, to] = signed ? [-Math.max(-low, high), Math.max(-low, high)] : [low, high];
    const factor = to > from ? 255 / (to - from) : 0;
    const shades = palette(signed);
    const context = canvas.getContext("2d");
    const image = context.createImageData(width, height);
    const pixels = new Uint32Array(image.data.buffer);
    for (let y = 0; y < height; y += 1) {
      const line = (kind === "spectrogram" ? height - 1 - y : y) * width; // the lowest frequency is at the bottom
      for (let x = 0; x < width; x += 1) pixels[y * width + x] = shades[Math.max(0, Math.min(255, Math.round(factor * (values[line + x] - from))))];
    }
    context.putImageData(image, 0, 0);
  }

  function drawPlot(canvas, values, low, high) {
    const [width, height] = [480, 200];
    canvas.classList.add("plot");
    canvas.width = width;
    canvas.height = height;
    canvas.style.aspectRatio = `${width} / ${height}`;
    const context = canvas.getContext("2d");
    const span = high > low ? high - low : 1;
    const at = (value) => height - 8 - ((value - low) / span) * (height - 16);
    const step = width / values.length;
    if (kind === "waveform") {
      context.strokeStyle = colour("--bar");
      context.lineWidth = 3;
      context.beginPath();
      values.forEach((value, i) => context.lineTo((i + 0.5) * step, at(value)));
      context.stroke();
    } else {
      values.forEach((value, i) => {
        context.fillStyle = colour(value < 0 ? "--bar-negative" : "--bar");
        const [top, bottom] = value < 0 ? [at(0), at(value)] : [at(value), at(0)];
        context.fillRect(i * step, top, Math.max(1, step * 0.82), Math.max(1, bottom - top));
      });
    }
    context.fillStyle = colour("--soft");
    context.fillRect(0, at(0), width, 1);
  }

  const painters = new Set();
  /** A canvas that is painted now and again when colours change. */
  function picture(paint, label) {
    const canvas = make("canvas", label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" });
    const painter = () => paint(canvas);
    canvas.painter = painter;
    painters.add(painter);
    painter();
    return canvas;
  }
  function forget(container) {
    container.querySelectorAll("canvas").forEach((canvas) => painters.delete(canvas.painter));
    container.replaceChildren();
  }

  function limits(h) {
    const scale = byId("scale").value;
    if (scale === "contrast" && !flat) return [components.low[h], components.high[h]];
    if (scale === "common") return [Math.min(0, ...components.low), Math.max(0, ...components.high)];
    return [Math.min(0, components.low[h]), Math.max(0, components.high[h])];
  }
  function paintComponent(canvas, h) {
    const [low, high] = limits(h);
    const values = componentValues(h);
    if (flat) drawPlot(canvas, values, low, high);
    else drawImage(canvas, values, components.shape, low, high, components.signed);
  }
  function paintRow(canvas, values, r) {
    if (flat) drawPlot(canvas, values, rows.low[r], rows.high[r]);
    else drawImage(canvas, values, rows.shape, rows.low[r], rows.high[r], rows.signed);
  }
  const rowPicture = (r, label) => picture((canvas) => paintRow(canvas, rowValues(r), r), label);
  const againPicture = (r, label) => picture((canvas) => paintRow(canvas, reconstruction(r), r), label);
  function differencePicture(r, label) {
    const values = rowValues(r).map((value, i) => value - reconstruction(r)[i]);
    const most = Math.max(Math.abs(rows.low[r]), Math.abs(rows.high[r]));
    return picture((canvas) => {
      if (flat) drawPlot(canvas, values, -most, most);
      else drawImage(canvas, values, rows.shape, -most, most, true);
    }, label);
  }

  // ------------------------------------------------------------------ components

  const tiles = components.activity.map((_, h) => {
    const tile = make("button", {
      type: "button", className: "tile", "data-index": String(h), "aria-pressed": "false",
    });
    tile.append(
      picture((canvas) => paintComponent(canvas, h)),
      make("span", { className: "label" }, make("b", {}, String(h)), " ", make("span", {}, "")),
    );
    tile.addEventListener("click", () => chooseComponent(h, true));
    return tile;
  });

  const keys = {
    energy: (h) => -(components.energy[h] ?? -Infinity),
    activity: (h) => -(components.activity[h] ?? -Infinity),
    index: (h) => h,
  };
  function sortBy(name) {
    const order = tiles.map((_, h) => h).sort((a, b) => keys[name](a) - keys[name](b) || a - b);
    order.forEach((h) => {
      const texts = [`${percent(components.energy[h])} energy explained`, `${activityText(h)} ${activityName}`];
      if (name === "activity") texts.reverse();
      // The name that is read aloud begins with the text that is seen.
      tiles[h].setAttribute("aria-label", `Component ${h}, ${texts.join(", ")}`);
      tiles[h].querySelector(".label span").textContent = name === "activity" ? activityText(h) : percent(components.energy[h]);
    });
    byId("grid").replaceChildren(...order.map((h) => tiles[h]));
    return order;
  }
  document.querySelectorAll("input[name=sort]").forEach((input) => {
    input.addEventListener("change", () => {
      sortBy(input.value);
      byId("said").textContent = `Sorted by ${input.nextElementSibling.textContent}`;
    });
  });
  const exact = components.exact === null ? null : new Float32Array(bytes(components.exact).buffer);
  const width = exact === null ? 0 : exact.length / tiles.length;
  const offered = byId("downloads");
  if (exact !== null) {
    offered.append(
      action("npy", () => downloads.npy("components.npy", exact, [tiles.length, width]), "Download components as npy"),
      action("csv", () => downloads.csv("components.csv", [
        contents.names ?? Array.from({ length: width }, (_, d) => `feature${d}`),
        ...tiles.map((_, h) => Array.from(exact.subarray(h * width, (h + 1) * width))),
      ]), "Download components as csv"));
  }
  offered.append(action("PNG", () => downloads.png("components.png", [...document.querySelectorAll("#grid canvas")]), "Download components as PNG"));
  byId("scale").addEventListener("change", () => painters.forEach((painter) => painter()));
  byId("grid").addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const all = [...byId("grid").children];
    const next = all[all.indexOf(document.activeElement) + step];
    if (step && next) {
      next.focus();
      event.preventDefault();
    }
  });

  function bar(value, most) {
    const fill = make("span", { className: value < 0 ? "fill negative" : "fill" });
    fill.style.width = `${most > 0 ? Math.min(100, (100 * Math.abs(value)) / most) : 0}%`;
    return make("span", { className: "track" }, fill);
  }

  function reveal(element) {
    const box = element.getBoundingClientRect();
    if (box.top < 0 || box.top > innerHeight - 120) element.scrollIntoView({ block: "start", behavior: "auto" });
  }

  function action(text, act, label) {
    const button = make("button", { type: "button", className: "quiet", "aria-label": label }, text);
    button.addEventListener("click", act);
    return button;
  }

  const axes = () => (contents.axes === null ? [] : [make("p", { className: "hint axes" }, contents.axes)]);

  /** Show a component as large as the window allows; Escape closes it. */
  function enlarge(h) {
    const dialog = byId("zoom");
    const holder = byId("zoom-picture");
    forget(holder);
    byId("zoom-title").textContent = `Component ${h}`;
    holder.append(picture((canvas) => paintComponent(canvas, h), `Component ${h}, enlarged`), ...axes());
    const [height, width] = components.shape;
    holder.style.width = flat ? "min(90vw, 1000px)" : `min(90vw, ${kind === "spectrogram" ? 70 : (70 * width) / height}vh)`;
    dialog.showModal();
  }
  byId("zoom-close").addEventListener("click", () => byId("zoom").close());

  function chooseComponent(h, asked) {
    tiles.forEach((tile, own) => tile.setAttribute("aria-pressed", String(own === h)));
    byId("panel-title").textContent = `Component ${h}`;
    const body = byId("panel-body");
    forget(body);
    const big = make("div", { className: flat ? "big wide" : "big" }, picture((canvas) => paintComponent(canvas, h), `Component ${h}`));
    const pairs = make("dl", { className: "pairs" });
    for (const [name, value] of [
      [activityName, activityText(h)],
      ["energy explained", percent(components.energy[h])],
      ["values", `${number(components.low[h])} to ${number(components.high[h])}`],
    ]) pairs.append(make("dt", {}, name), make("dd", {}, value));
    const actions = make("p", { className: "actions" },
      action("Enlarge", () => enlarge(h), `Enlarge component ${h}`),
      action("PNG", () => downloads.png(`component-${h}.png`, [big.querySelector("canvas")]), `Download component ${h} as PNG`));
    body.append(big, ...axes(), actions, pairs);
    if (components.features !== null) {
      const most = Math.max(...components.features[h].map(([, value]) => Math.abs(value)));
      const list = make("ul", { className: "bars", id: "features" });
      for (const [name, value] of components.features[h]) {
        list.append(make("li", {}, make("span", { className: "line" }, make("span", {}, name), bar(value, most), make("span", { className: "number" }, number(value)))));
      }
      body.append(make("h3", {}, "Strongest features"), list);
    }
    const users = make("div", { className: `users ${kind}`, id: "users" });
    for (const r of components.users[h]) users.append(rowTile(r, false));
    body.append(make("h3", {}, "Rows that use it most"), components.users[h].length ? users : make("p", { className: "hint" }, "No row uses it."));
    if (asked) reveal(byId("panel"));
  }

  // ------------------------------------------------------------------ rows

  function rowTile(r, both) {
    const tile = make("button", { type: "button", className: "tile row-tile", "data-row": String(rows.numbers[r]), "aria-label": `Row ${rows.numbers[r]}: show its causes` });
    tile.append(rowPicture(r));
    if (both && reconstruction !== null) tile.append(againPicture(r));
    tile.append(make("span", { className: "label" }, make("b", {}, String(rows.numbers[r]))));
    tile.addEventListener("click", () => chooseRow(r, true));
    return tile;
  }

  function chooseRow(r, asked) {
    document.querySelectorAll(".row-tile").forEach((tile) => tile.setAttribute("aria-pressed", String(tile.dataset.row === String(rows.numbers[r]))));
    const body = byId("row");
    forget(body);
    const views = make("div", { className: `views ${kind}` });
    const view = (canvas, text) => views.append(make("figure", {}, canvas, make("figcaption", {}, text)));
    view(rowPicture(r, `Row ${rows.numbers[r]}`), "data");
    if (reconstruction !== null) {
      view(againPicture(r, "Its reconstruction"), "reconstruction");
      view(differencePicture(r, "Data less reconstruction"), "difference");
    }
    const list = make("ul", { className: "bars", id: "causes" });
    const most = contents.probabilities ? 1 : Math.max(...rows.causes[r].map(([, value]) => Math.abs(value)));
    for (const [h, value] of rows.causes[r]) {
      const text = contents.probabilities ? percent(value) : number(value);
      const button = make("button", { type: "button", "aria-label": `Component ${h}: ${text}` },
        picture((canvas) => paintComponent(canvas, h)), make("span", {}, String(h)), " ", bar(value, most), make("span", { className: "number" }, text));
      button.addEventListener("click", () => {
        chooseComponent(h, true);
        byId("panel").focus({ preventScroll: true });
      });
      list.append(make("li", {}, button));
    }
    body.append(
      make("div", {}, make("h3", {}, `Row ${rows.numbers[r]}`), views,
        rows.scores[r] === null ? null : make("p", { className: "hint" }, `${contents.score} ${number(rows.scores[r])}`)),
      make("div", {}, make("h3", {}, contents.probabilities ? "Probability of each cause" : "Strongest causes"), list),
    );
    if (rows.states !== null) {
      const states = make("div", { id: "states" });
      for (const [active, p] of rows.states[r]) {
        states.append(make("div", { className: "state" }, make("span", { className: "number" }, percent(p)),
          ...(active.length ? active.map((h) => make("span", { className: "chip" }, String(h))) : [make("span", { className: "chip" }, "no cause")])));
      }
      body.append(make("div", {}, make("h3", {}, "Most probable states"), states));
    }
    if (asked) reveal(body);
  }

  // ------------------------------------------------------------------ table of rows

  const columns = ["row", contents.score, "root mean square error", "strongest causes"];
  const strongest = (r) => rows.causes[r].slice(0, 3).map(([h, value]) => `${h}: ${contents.probabilities ? percent(value) : number(value)}`).join("; ");
  const lines = rows.numbers.map((row, r) => [row, rows.scores[r], rows.errors === null ? null : rows.errors[r], strongest(r)]);
  const table = byId("row-table");
  table.append(make("thead", {}, make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)))));
  table.append(make("tbody", {}, ...lines.map(([row, score, error, causes]) => make("tr", {},
    make("th", { scope: "row" }, String(row)), make("td", {}, number(score)), make("td", {}, number(error)), make("td", {}, causes)))));
  byId("row-downloads").append(action("csv", () => downloads.csv("rows.csv", [columns, ...lines.map((line) => line.map((value) => value ?? ""))]), "Download the table of rows as csv"));

  // ------------------------------------------------------------------ learning curves

  function ticks(low, high, count) {
    const rough = (high - low) / count || 1;
    const unit = 10 ** Math.floor(Math.log10(rough));
    const step = unit * [1, 2, 5, 10].find((factor) => factor * unit >= rough);
    const found = [];
    for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-9; value += step) found.push(Math.abs(value) < step * 1e-9 ? 0 : value);
    return found;
  }

  function svg(tag, attributes, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  }

  function drawCurve(holder, curve) {
    const points = curve.values.map((value, i) => [curve.places[i], value]).filter(([, value]) => value !== null);
    const [width, height, left, bottom, top] = [holder.clientWidth || 600, 232, 64, 46, 12];
    const values = points.map(([, value]) => value);
    let [low, high] = [Math.min(...values), Math.max(...values)];
    if (low === high) [low, high] = [low - 1, high + 1];
    const last = points[points.length - 1][0] || 1;
    const x = (place) => left + (place / last) * (width - left - 14);
    const y = (value) => height - bottom - ((value - low) / (high - low)) * (height - bottom - top);
    const drawing = svg("svg", { role: "img", viewBox: `0 0 ${width} ${height}`, "aria-label": `${curve.label}: from ${number(values[0])} to ${number(values[values.length - 1])} until ${curve.unit} ${last}` });
    for (const value of ticks(low, high, 4)) {
      drawing.append(svg("line", { class: "axis", x1: left, x2: width - 14, y1: y(value), y2: y(value) }), svg("text", { x: left - 8, y: y(value) + 4, "text-anchor": "end" }, number(value)));
    }
    for (const place of ticks(0, last, Math.max(2, Math.floor(width / 110))).filter(Number.isInteger)) drawing.append(svg("text", { x: x(place), y: height - 28, "text-anchor": "middle" }, String(place)));
    for (const [start, reason] of curve.changes) {
      const mark = svg("line", { class: "change", x1: x(start - 0.5), x2: x(start - 0.5), y1: top, y2: height - bottom });
      mark.append(svg("title", {}, `From iteration ${start} on: ${reason}`));
      drawing.append(mark);
    }
    drawing.append(svg("text", { x: (left + width) / 2, y: height - 1, "text-anchor": "middle" }, curve.unit));
    drawing.append(svg("path", { d: `M${points.map(([place, value]) => `${x(place).toFixed(1)},${y(value).toFixed(1)}`).join("L")}` }));
    const [rule, dot, said] = [svg("line", { class: "rule", y1: top, y2: height - bottom }), svg("circle", { class: "at", r: 4 }), svg("text", { y: top + 2 })];
    drawing.addEventListener("pointermove", (event) => {
      const at = event.clientX - drawing.getBoundingClientRect().left;
      const nearest = points.reduce((best, point) => (Math.abs(x(point[0]) - at) < Math.abs(x(best[0]) - at) ? point : best));
      const [px, py] = [x(nearest[0]), y(nearest[1])];
      for (const [name, value] of [["x1", px], ["x2", px]]) rule.setAttribute(name, value);
      dot.setAttribute("cx", px);
      dot.setAttribute("cy", py);
      said.setAttribute("x", px > width / 2 ? px - 8 : px + 8);
      said.setAttribute("text-anchor", px > width / 2 ? "end" : "start");
      said.textContent = `${curve.unit} ${nearest[0]}: ${number(nearest[1])}`;
      if (!rule.isConnected) drawing.append(rule, dot, said);
    });
    drawing.addEventListener("pointerleave", () => [rule, dot, said].forEach((element) => element.remove()));
    holder.replaceChildren(drawing);
  }

  const holders = contents.curves.map((curve) => {
    const holder = make("div", {});
    const notes = curve.changes.map(([start, reason]) => make("p", { className: "hint" }, `From iteration ${start} on (dashed line), values are not comparable with those before: ${reason}.`));
    byId("curves").append(make("div", { className: "curve" }, make("h3", {}, curve.label), holder,
      make("p", { className: "actions" }, action("SVG", () => downloads.svg(`${curve.label.replace(/[^a-z0-9]+/gi, "-")}.svg`, holder.querySelector("svg"), curve.label), `Download as SVG: ${curve.label}`)), ...notes, ...(curve.note ? [make("p", { className: "hint" }, `${curve.note}.`)] : [])));
    return [holder, curve];
  });
  const drawCurves = () => holders.forEach(([holder, curve]) => drawCurve(holder, curve));

  // ------------------------------------------------------------------ theme

  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  function applyTheme() {
    const dark = chosen === null ? system.matches : chosen === "dark";
    root.dataset.theme = dark ? "dark" : "light";
    byId("theme").querySelector(".other").textContent = dark ? "Light" : "Dark";
    painters.forEach((painter) => painter());
  }
  byId("theme").addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    applyTheme();
  });
  system.addEventListener("change", applyTheme);

  // ------------------------------------------------------------------ begin

  applyTheme();
  const order = sortBy("energy");
  byId("examples").append(...rows.examples.map((r) => rowTile(r, true)));
  chooseComponent(order[0], false);
  chooseRow(rows.first, false);
  drawCurves();
  let waiting = 0;
  addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(drawCurves);
  });
})();
