/** Line charts of the last hour. Chart.js comes with the admin; all else is here. */
import { count, rate, t, wait } from "./words.js";

const CHARTS = [
  { lines: ["accepted"], titles: ["accepted"], colors: ["good"], format: rate },
  { lines: ["sold_out"], titles: ["sold_out"], colors: ["bad"], format: rate },
  { lines: ["left"], titles: ["left"], colors: ["left"], format: count },
  { lines: ["queued"], titles: ["queued"], colors: ["waiting"], format: count },
  { lines: ["settle_ms", "oldest_ms"], titles: ["settle_mean", "settle_oldest"], colors: ["waiting", "bad"], format: wait },
];

const color = (root, name) => getComputedStyle(root).getPropertyValue(`--line-${name}`).trim();
const times = new Intl.DateTimeFormat(document.documentElement.lang || "en", {
  hour: "2-digit", minute: "2-digit", hourCycle: "h23",
});
const seconds = new Intl.DateTimeFormat(document.documentElement.lang || "en", {
  hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});

function last(line) {
  for (let place = line.length - 1; place >= 0; place -= 1) if (line[place] !== null) return line[place];
  return null;
}

function options(root, format, isLegendShown) {
  const quiet = color(root, "quiet");
  const grid = color(root, "grid");
  return {
    animation: false, responsive: true, maintainAspectRatio: false, normalized: true, parsing: false,
    interaction: { mode: "index", intersect: false },
    elements: { point: { radius: 0, hitRadius: 8 }, line: { borderWidth: 1.5 } },
    scales: {
      x: {
        type: "linear", grid: { display: false }, border: { color: grid },
        ticks: {
          color: quiet, maxRotation: 0, autoSkip: true, maxTicksLimit: 5,
          callback: (value) => times.format(new Date(value)),
        },
      },
      y: {
        beginAtZero: true, suggestedMax: 1, grid: { color: grid }, border: { display: false },
        ticks: { color: quiet, maxTicksLimit: 4, callback: (value) => format(value) },
      },
    },
    plugins: {
      legend: { display: isLegendShown, position: "bottom", labels: { color: quiet, boxWidth: 10, boxHeight: 2 } },
      tooltip: {
        callbacks: {
          title: (points) => (points.length ? seconds.format(new Date(points[0].parsed.x)) : ""),
          label: (point) => `${point.dataset.label}: ${format(point.parsed.y)}`,
        },
      },
    },
  };
}

/** One chart with its title, its present and its highest value in words. */
function makeChart(root, { lines, titles, colors, format }) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const title = document.createElement("span");
  const value = document.createElement("span");
  const frame = document.createElement("div");
  const canvas = document.createElement("canvas");
  title.textContent = t(titles[0] === "settle_mean" ? "settle_title" : titles[0]);
  value.className = "quiet";
  frame.className = "frame";
  canvas.setAttribute("role", "img");
  caption.append(title, value);
  frame.append(canvas);
  figure.append(caption, frame);
  root.append(figure);
  const datasets = lines.map((_, place) => ({
    label: t(titles[place]), data: [], spanGaps: false, fill: lines.length === 1,
    borderColor: color(root, colors[place]), backgroundColor: color(root, `${colors[place]}-area`),
    stepped: false, tension: 0,
  }));
  const chart = new window.Chart(canvas, {
    type: "line", data: { datasets }, options: options(root, format, lines.length > 1),
  });
  return (series, fromMs) => {
    lines.forEach((name, place) => {
      datasets[place].data = series.points.map((x, n) => ({ x, y: series[name][n] })).filter((point) => point.x >= fromMs);
    });
    chart.options.scales.x.min = fromMs;
    chart.options.scales.x.max = series.points.at(-1);
    chart.update("none");
    const shown = lines.flatMap((_, place) => datasets[place].data.map((point) => point.y)).filter((y) => y !== null);
    const present = format(last(series[lines[0]]));
    value.textContent = shown.length
      ? `${t("now", { number: present })} · ${t("peak", { number: format(shown.reduce((a, b) => Math.max(a, b), 0)) })}`
      : t("no_samples");
    canvas.setAttribute("aria-label", `${title.textContent}: ${value.textContent}`);
  };
}

/** Make all charts below a node; returns a function that draws series over the last so many seconds. */
export function makeCharts(root) {
  if (!window.Chart) return () => {};
  window.Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  window.Chart.defaults.font.size = 11;
  let drawers = CHARTS.map((spec) => makeChart(root, spec));
  let shown = null;
  const draw = (series, lastSeconds) => {
    shown = [series, lastSeconds];
    const begins = new Date(series.begins_at).getTime();
    series.points = series.left.map((_, n) => begins + n * series.slot_seconds * 1000);
    drawers.forEach((drawer) => drawer(series, series.points.at(-1) - lastSeconds * 1000));
  };
  // Colours are read when a chart is made: another theme makes them anew.
  new MutationObserver(() => {
    root.replaceChildren();
    drawers = CHARTS.map((spec) => makeChart(root, spec));
    if (shown) draw(...shown);
  }).observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
  return draw;
}
