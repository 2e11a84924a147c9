import { change, difference, fails, NONE, number } from "./figures.js";
import type { Outcome } from "./outcome.js";
import type { Entry } from "./service.js";

const MARKUP = /[\\`*_[\]<>|#@~]/g;

/** Returns a run as Markdown, for a comment on a pull request. */
export function markdown(outcome: Outcome): string {
  const lines = [`### Experiment: ${plain(outcome.title)}`, "", verdict(outcome), ""];
  const { target } = outcome;
  if (target !== null && outcome.verdict !== null) {
    lines.push(...table(outcome, target), "", ...newlyFailed(target), ...worst(target), ...tags(target));
  }
  if (outcome.experiment !== null) {
    lines.push(lastLine(outcome), "");
  }
  return lines.join("\n");
}

function verdict(outcome: Outcome): string {
  if (outcome.isUnchanged) {
    return "**unchanged**: it would be compared with itself.";
  }
  if (outcome.error !== null) {
    return `**not run** (${plain(outcome.error.code)}): ${plain(outcome.error.message)}`;
  }
  const explanation = outcome.target?.["explanation"];
  return `**${outcome.verdict}**${explanation ? `: ${plain(explanation)}` : ""}`;
}

function table(outcome: Outcome, target: Entry): string[] {
  const versions = `Version ${outcome.version} | Version ${outcome.against}`;
  return [
    `| Evaluator | ${versions} | Difference | Won, tied, lost | Passes |`,
    "|---|---:|---:|---:|---:|---|",
    ...(target["evaluators"] as Entry[]).map(row),
  ];
}

function row(evaluator: Entry): string {
  const counts = `${evaluator["wins"]}, ${evaluator["ties"]}, ${evaluator["losses"]}`;
  const passes = fails(evaluator) ? "**no**" : evaluator["passes"] ? "yes" : NONE;
  const means = `${number(evaluator["target_mean"])} | ${number(evaluator["baseline_mean"])}`;
  return `| ${plain(evaluator["title"])} | ${means} | ${difference(evaluator)} | ${counts} | ${passes} |`;
}

function newlyFailed(target: Entry): string[] {
  return (target["evaluators"] as Entry[])
    .filter((evaluator) => evaluator["must_pass"] && evaluator["newly_failed_count"] > 0)
    .flatMap((evaluator) => {
      const first: number[] = evaluator["newly_failed"];
      const more = evaluator["newly_failed_count"] - first.length;
      const rest = more > 0 ? ` and ${more} more` : "";
      return [`Newly failed by ${plain(evaluator["title"])}: items ${first.join(", ")}${rest}.`, ""];
    });
}

function worst(target: Entry): string[] {
  const found = (target["worst_items"] as Entry[]).filter((item) => item["difference"] < 0);
  const shown = found.map((item) => `${item["position"]} (${change(item["difference"])})`);
  return shown.length === 0 ? [] : [`Worst items: ${shown.join(", ")}.`, ""];
}

function tags(target: Entry): string[] {
  return (target["worse_tags"] as Entry[]).map((one) => {
    const where = `Worse at the tag ${plain(one["tag"])} by ${plain(one["evaluator"])}`;
    return `${where}: ${change(one["difference"])} in ${one["pairs"]} pairs.\n`;
  });
}

function lastLine(outcome: Outcome): string {
  const [dataset, report, spent] = [outcome.field("dataset"), outcome.field("report"), outcome.field("spent_usd")];
  const parts = [
    ...(report === null ? [] : [`${report["items_judged"]} of ${report["item_count"]} items`]),
    ...(dataset === null ? [] : [`data set ${plain(dataset["name"])}, version ${dataset["version"]}`]),
    ...(outcome.field("stopped_early") ? ["stopped early"] : []),
    ...(spent === null ? [] : [`$${Number(spent).toFixed(4)}`]),
  ];
  return `${parts.join(", ")}. [Experiment](${outcome.url})`;
}

/** Returns a text without its effect as Markdown, on one line. */
function plain(text: unknown): string {
  return String(text).trim().replace(/\s+/g, " ").replace(MARKUP, "\\$&");
}
