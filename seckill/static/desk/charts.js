/** Line charts of the last hour, drawn by uPlot (static/desk/vendor/uplot); colours are the page's. */
import { count, rate, t, wait } from "./words.js";

const HEIGHT = 170;
const CHARTS = [
  { title: "accepted", lines: ["accepted"], colors: ["good"], format: rate },
  { title: "sold_out", lines: ["sold_out"], colors: ["bad"], format: rate },
  { title: "left", lines: ["left"], colors: ["left"], format: count },
  { title: "queued", lines: ["queued"], colors: ["waiting"], format: count },
  { title: "settle_title", lines: ["settle_ms", "oldest_ms"], names: ["settle_mean", "settle_oldest"], colors: ["waiting", "bad"], format: wait },
];

const clock = new Intl.DateTimeFormat(document.documentElement.lang || "en", {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});
const short = new Intl.DateTimeFormat(document.documentElement.lang || "en", {
  hour: "2-digit", minute: "2-digit", hourCycle: "h23",
});
const color = (root, name) => getComputedStyle(root).getPropertyValue(`--line-${name}`).trim();
/** What a line ends with; a slot that is not finished may have nothing yet. */
const last = (line) => line.slice(-2).findLast((value) => value !== null) ?? null;
const highest = (lines) => lines.flat().reduce((most, value) => Math.max(most, value ?? 0), 0);

function options(root, { lines, colors, format }, width) {
  const axis = { stroke: color(root, "quiet"), grid: { stroke: color(root, "grid"), width: 1 }, ticks: { show: false }, font: "11px sans-serif" };
  return {
    width, height: HEIGHT, legend: { show: false }, padding: [8, 8, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: { x: { time: true }, y: { range: (_, __, max) => [0, Math.max(1, max ?? 1) * 1.1] } },
    axes: [
      { ...axis, grid: { show: false }, space: 70, size: 26, values: (_, ticks) => ticks.map((at) => short.format(at * 1000)) },
      { ...axis, space: 34, size: 58, values: (_, ticks) => ticks.map((value) => format(value)) },
    ],
    series: [
      {},
      ...lines.map((_, place) => ({
        stroke: color(root, colors[place]), width: 1.5, spanGaps: false, points: { show: false },
        fill: lines.length === 1 ? color(root, `${colors[place]}-area`) : undefined,
      })),
    ],
  };
}

/** One chart with its name, its present and its highest value in words; returns what draws it. */
function makeChart(root, spec) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const title = document.createElement("span");
  const value = document.createElement("span");
  const frame = document.createElement("div");
  title.textContent = t(spec.title);
  value.className = "quiet";
  frame.className = "frame";
  frame.setAttribute("role", "img");
  caption.append(title, value);
  figure.append(caption, frame);
  if (spec.names) figure.append(legend(spec));
  root.append(figure);
  let plot = null;
  let shown = "";

  function say(text) {
    shown = text;
    value.textContent = text;
    frame.setAttribute("aria-label", `${title.textContent}: ${text}`);
  }

  /** While somebody points at it, the caption says what stands there. */
  function point(chart) {
    const place = chart.cursor.idx;
    if (place === null || place === undefined) {
      value.textContent = shown;
      return;
    }
    const values = spec.lines.map((_, line) => spec.format(chart.data[line + 1][place]));
    value.textContent = `${clock.format(chart.data[0][place] * 1000)} · ${values.join(" · ")}`;
  }

  function draw(points, lines) {
    const width = frame.clientWidth;
    if (plot === null) {
      plot = new window.uPlot({ ...options(root, spec, width), hooks: { setCursor: [point] } }, [points, ...lines], frame);
    } else {
      if (plot.width !== width) plot.setSize({ width, height: HEIGHT });
      plot.setData([points, ...lines]);
    }
    const isKnown = lines.flat().some((number) => number !== null);
    say(isKnown
      ? `${t("now", { number: spec.format(last(lines[0])) })} · ${t("peak", { number: spec.format(highest(lines)) })}`
      : t("no_samples"));
  }

  return { spec, draw, forget: () => plot?.destroy() };
}

function legend(spec) {
  const line = document.createElement("p");
  line.className = "quiet legend";
  spec.names.forEach((name, place) => {
    const part = document.createElement("span");
    const key = document.createElement("i");
    key.className = "key";
    key.style.backgroundColor = `var(--line-${spec.colors[place]})`;
    part.append(key, t(name));
    line.append(part, " ");
  });
  return line;
}

/** Make all charts below a node; returns a function that draws series. */
export function makeCharts(root) {
  let charts = CHARTS.map((spec) => makeChart(root, spec));
  let shown = null;

  function draw(series) {
    shown = series;
    const begins = Date.parse(series.begins_at) / 1000;
    // The last slot is still under way: its rates would always dip.
    const to = series.left.length - 1;
    const points = series.left.slice(0, to).map((_, n) => begins + n * series.slot_seconds);
    charts.forEach((chart) => chart.draw(points, chart.spec.lines.map((name) => series[name].slice(0, to))));
  }

  function again() {
    charts.forEach((chart) => chart.forget());
    root.replaceChildren();
    charts = CHARTS.map((spec) => makeChart(root, spec));
    if (shown) draw(shown);
  }

  new ResizeObserver(() => shown && draw(shown)).observe(root);
  // Colours are read when a chart is made: another theme makes them anew.
  new MutationObserver(again).observe(document.documentElement, { attributes: true, attributeFilter: ["class", "data-theme"] });
  return draw;
}
