// Plots of values over time, in the colours of the theme.
/* global uPlot */
import { h, count, size } from "./lib.js";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const open = new Set();
const decimals = Array.from({ length: 36 }, (_, i) => [1, 2, 5][i % 3] * 10 ** Math.floor(i / 3)); // of counts
const powers = Array.from({ length: 50 }, (_, i) => 2 ** i); // the steps of axes of bytes
const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) for (const p of open) if (p.box === target) p.fit();
});

// latest makes the legend show the newest values while the pointer is not on the plot.
function latest(u) {
  if (u && u.cursor.idx == null && u.data[0].length) u.setLegend({ idx: u.data[0].length - 1 }, false);
}

// plot returns a figure. series are [label, format]; set shows data: an array of seconds since 1970, and one for each series.
export function plot(title, series, { height = 150, format = series[0][1], log = false, fill = true } = {}) {
  const box = h("div", { class: "canvas" });
  const figure = h("figure", { class: "plot" }, h("figcaption", null, title), box);
  const axis = { stroke: () => css("--dim"), grid: { stroke: () => css("--grid"), width: 1 }, ticks: { show: false },
    font: "11px system-ui" };
  const p = { box, u: null, data: null, fit() {
    const width = box.clientWidth;
    if (!width) return;
    if (this.u) this.u.setSize({ width, height });
    else if (this.data?.[0].length > 1) {
      this.u = new uPlot({
        width, height, padding: [10, 30, 0, 0], cursor: { points: { size: 5 }, y: false }, legend: { live: true },
        scales: { y: log ? { distr: 3 } : { range: (u, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
        axes: [{ ...axis, size: 24, space: 70, values: (u, at) => at.map((t) => new Date(t * 1000).toTimeString().slice(0, 8)) },
          { ...axis, size: (u, values) => 14 + 6.5 * Math.max(4, ...(values || []).map((v) => v.length)), space: 28, incrs: format === count ? decimals : format(1024).startsWith(size(1024)) ? powers : undefined,
            values: (u, at) => at.map((v) => (v === null ? "" : format(v))) }],
        series: [{ value: (u, t) => (t === null ? "" : new Date(t * 1000).toTimeString().slice(0, 8)) },
          ...series.map(([label, show], i) => ({ label, width: 1.5, stroke: () => css("--c" + (i + 1)), points: { show: false },
            fill: fill && i === 0 ? () => css("--c1-fill") : undefined, value: (u, v) => (v === null ? "–" : show(v)) }))],
        hooks: { setCursor: [latest] },
      }, this.data, box);
      latest(this.u);
    }
  } };
  open.add(p);
  resized.observe(box);
  figure.set = (data) => {
    p.data = data;
    if (p.u) p.u.setData(data);
    else p.fit();
    latest(p.u);
  };
  figure.end = () => {
    open.delete(p);
    resized.unobserve(box);
    p.u?.destroy();
  };
  return figure;
}

export const redraw = () => { for (const p of open) p.u?.redraw(); };
