"use strict";
/** Files that are made in the browser from what the page shows. */
const downloads = (() => {
  function save(name, type, ...parts) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(parts, { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  /** An array of single-precision numbers (rows, columns) as numpy.load reads it. */
  function npy(name, values, shape) {
    const described = `{'descr': '<f4', 'fortran_order': False, 'shape': (${shape.join(", ")}), }`;
    const padded = `${described.padEnd(Math.ceil((described.length + 11) / 64) * 64 - 11)}\n`;
    const start = new Uint8Array([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, padded.length & 255, padded.length >> 8]);
    save(name, "application/octet-stream", start, padded, values);
  }

  const quoted = (value) => (/[",\n]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  const csv = (name, lines) => save(name, "text/csv", lines.map((line) => line.map(quoted).join(",")).join("\n"), "\n");

  /** Pictures side by side, with their pixels enlarged to be seen. */
  function png(name, canvases) {
    const [width, height] = [canvases[0].width, canvases[0].height];
    const factor = Math.max(1, Math.floor(160 / Math.max(width, height)));
    const columns = Math.ceil(Math.sqrt(canvases.length));
    const whole = document.createElement("canvas");
    whole.width = columns * (factor * width + 4) - 4;
    whole.height = Math.ceil(canvases.length / columns) * (factor * height + 4) - 4;
    const context = whole.getContext("2d");
    context.imageSmoothingEnabled = false;
    canvases.forEach((canvas, i) => context.drawImage(canvas, (i % columns) * (factor * width + 4), Math.floor(i / columns) * (factor * height + 4), factor * width, factor * height));
    whole.toBlob((blob) => save(name, "image/png", blob));
  }

  const STYLE = "text{font:12px sans-serif;fill:#333}.axis{stroke:#ddd}path{fill:none;stroke:#3b78cf;stroke-width:2}.change{stroke:#666;stroke-dasharray:6 4}";
  function svg(name, drawing, title) {
    const copy = drawing.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    copy.querySelectorAll(".rule, .at").forEach((element) => element.remove());
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = STYLE;
    const text = document.createElementNS("http://www.w3.org/2000/svg", "title");
    text.textContent = title;
    copy.prepend(text, style);
    save(name, "image/svg+xml", new XMLSerializer().serializeToString(copy));
  }

  return { npy, csv, png, svg };
})();
