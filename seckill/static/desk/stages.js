/** Where a purchase's milliseconds go: a bar of the average sampled one, and each stage in numbers. */
import { count, moment, t } from "./words.js";

function part(stage) {
  const piece = document.createElement("i");
  piece.className = `stage-${stage.stage}`;
  piece.style.flexGrow = String(Math.max(stage.share, 0));
  piece.title = `${t(`stage_${stage.stage}`)}: ${moment(stage.own_us)}`;
  return piece;
}

function line(stage) {
  const item = document.createElement("li");
  const key = document.createElement("i");
  const name = document.createElement("span");
  const time = document.createElement("b");
  const bounds = document.createElement("span");
  key.className = `key stage-${stage.stage}`;
  name.textContent = t(`stage_${stage.stage}`);
  time.textContent = `${moment(stage.own_us)} · ${Math.round(stage.share * 100)} %`;
  bounds.className = "quiet";
  bounds.textContent = t("stage_bounds", { half: moment(stage.p50_us), most: moment(stage.p99_us) });
  item.append(key, name, time, bounds);
  return item;
}

/** Draw a breakdown into its panel. */
export function showStages(panel, { sampled, one_in: oneIn, seconds, whole_us: wholeUs, stages }) {
  const values = { one_in: count(oneIn), number: count(sampled), seconds: count(seconds) };
  panel.querySelector("[data-stages-whole]").textContent = sampled ? t("stages_whole", { time: moment(wholeUs) }) : "";
  panel.querySelector("[data-stages-bar]").replaceChildren(...stages.map(part));
  panel.querySelector("[data-stages-list]").replaceChildren(...stages.map(line));
  panel.querySelector("[data-stages-note]").textContent =
    oneIn === 0 ? t("stages_off") : sampled ? t("stages_sampled", values) : t("stages_none", values);
}
