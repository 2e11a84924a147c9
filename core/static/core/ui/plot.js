// Adds to the plots of a page the values under the pointer and by keys, and a brush that opens a page for the marked
// time. The values are those of the table below each plot.
const SVG = "http://www.w3.org/2000/svg";
const MIN_DRAG_PIXELS = 5;
const STEPS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };

export function watchPlots() {
  enhance(document);
  document.addEventListener("panel", (event) => enhance(event.target));
}

function enhance(root) {
  for (const figure of root.querySelectorAll("figure[data-plot]:not([data-ready])")) {
    figure.dataset.ready = "true";
    new Reader(figure);
  }
}

class Reader {
  constructor(figure) {
    const { plot, start, end, step, brush } = figure.dataset;
    Object.assign(this, { title: plot, start: Number(start), end: Number(end), step: Number(step), brush });
    const table = figure.querySelector(".plot-values table");
    this.names = [...table.tHead.rows[0].cells].slice(1).map((cell) => cell.textContent);
    this.points = [...table.tBodies[0].rows].map((row) => this.point(row));
    this.index = this.points.length - 1;
    this.anchor = null; // where a selection began: a share of the width
    const canvas = figure.querySelector(".plot-canvas");
    this.svg = canvas.querySelector("svg");
    this.bottom = Number(this.svg.getAttribute("height")) - 24;
    this.slider = this.makeSlider();
    this.readout = figure.querySelector(".plot-readout");
    canvas.append(this.slider);
    this.describe();
    this.listen();
  }

  point(row) {
    const [head, ...cells] = [...row.cells].map((cell) => cell.textContent);
    const from = Number(row.dataset.t);
    const until = Math.min(from + this.step, this.end);
    const values = cells.map((text, place) => `${this.names[place]} ${text}`).join(" · ");
    return { from, until, share: this.shareOf((from + until) / 2), text: `${head}: ${values}` };
  }

  shareOf(time) {
    return (time - this.start) / (this.end - this.start);
  }

  makeSlider() {
    const slider = Object.assign(document.createElement("div"), { className: "plot-cursor", tabIndex: 0 });
    const keys = this.brush ? ", Shift with arrows marks a time and Enter opens it" : "";
    const given = { role: "slider", "aria-label": `Values of ${this.title}${keys}`, "aria-valuemin": 0, "aria-valuemax": this.points.length - 1 };
    for (const [name, value] of Object.entries(given)) slider.setAttribute(name, value);
    return slider;
  }

  listen() {
    const on = (name, handler) => this.slider.addEventListener(name, handler);
    on("pointermove", (event) => this.follow(event));
    on("pointerleave", () => { if (document.activeElement !== this.slider) this.clear(); });
    on("focus", () => this.show());
    on("blur", () => this.clear());
    on("keydown", (event) => this.press(event));
    if (!this.brush) return;
    on("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.anchor = this.shareAt(event);
      this.pressedAt = event.clientX;
      this.slider.setPointerCapture(event.pointerId);
    });
    on("pointerup", (event) => {
      const isDrag = this.anchor !== null && Math.abs(event.clientX - this.pressedAt) >= MIN_DRAG_PIXELS;
      if (isDrag) this.open(...this.marked(this.shareAt(event)));
      this.unmark();
    });
    on("pointercancel", () => this.unmark());
  }

  shareAt(event) {
    const box = this.slider.getBoundingClientRect();
    return Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  }

  follow(event) {
    const share = this.shareAt(event);
    const distance = (index) => Math.abs(this.points[index].share - share);
    this.index = this.points.reduce((nearest, _, index) => (distance(index) < distance(nearest) ? index : nearest), 0);
    if (this.anchor !== null && this.pressedAt !== undefined) this.mark(share);
    this.show();
  }

  press(event) {
    if (event.key === "Escape") this.unmark();
    if (event.key === "Enter" && this.brush) {
      const { from, until } = this.points[this.index];
      const own = [this.shareOf(from), this.shareOf(until)];
      this.open(...(this.anchor === null ? own : this.marked(...own)));
    }
    if (!(event.key in STEPS)) return;
    event.preventDefault();
    if (!event.shiftKey) this.unmark();
    else this.anchor ??= this.shareOf(this.points[this.index].from);
    this.index = Math.min(Math.max(this.index + STEPS[event.key], 0), this.points.length - 1);
    if (this.anchor !== null) this.mark(this.shareOf(this.points[this.index].until));
    this.show();
  }

  // Shows the values of the present point.
  show() {
    const { share, text } = this.points[this.index];
    this.crosshair ??= this.svg.appendChild(this.shape("line", { class: "plot-crosshair", y1: 12, y2: this.bottom }));
    this.crosshair.setAttribute("x1", `${share * 100}%`);
    this.crosshair.setAttribute("x2", `${share * 100}%`);
    this.crosshair.removeAttribute("visibility");
    this.readout.textContent = text;
    this.describe();
  }

  describe() {
    this.slider.setAttribute("aria-valuenow", this.index);
    this.slider.setAttribute("aria-valuetext", this.points[this.index].text);
  }

  clear() {
    this.crosshair?.setAttribute("visibility", "hidden");
    this.readout.textContent = "";
    this.unmark();
  }

  // Returns the shares from which and to which the time is marked, in order.
  marked(...shares) {
    const all = [this.anchor, ...shares];
    return [Math.min(...all), Math.max(...all)];
  }

  mark(share) {
    const [from, until] = this.marked(share);
    this.selection ??= this.svg.appendChild(this.shape("rect", { class: "plot-selection", y: 12, height: this.bottom - 12 }));
    this.selection.setAttribute("x", `${from * 100}%`);
    this.selection.setAttribute("width", `${(until - from) * 100}%`);
  }

  unmark() {
    this.anchor = null;
    this.pressedAt = undefined;
    this.selection?.remove();
    this.selection = undefined;
  }

  open(from, until) {
    const moment = (share) => new Date((this.start + share * (this.end - this.start)) * 1000).toISOString();
    const address = new URL(this.brush, location.href);
    address.searchParams.set("range", "custom");
    address.searchParams.set("start", moment(from));
    address.searchParams.set("end", moment(until));
    location.assign(address);
  }

  shape(name, attributes) {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }
}
