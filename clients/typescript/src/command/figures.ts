import type { Entry } from "./service.js";

export const NONE = "–";

export function number(value: number | null): string {
  return value === null ? NONE : value.toFixed(3);
}

export function change(value: number | null): string {
  return value === null ? NONE : `${value < 0 ? "" : "+"}${value.toFixed(3)}`;
}

/** Returns the difference of the means with its interval. */
export function difference(evaluator: Entry): string {
  if (evaluator["difference"] === null) {
    return NONE;
  }
  return `${change(evaluator["difference"])} (${change(evaluator["low"])} to ${change(evaluator["high"])})`;
}

/** Returns all figures of an evaluator, one a line. */
export function inWords(evaluator: Entry, version: number | null, against: number | null): string {
  const { pairs, wins, ties, losses, min_rate: rate } = evaluator;
  const lines = [
    `version ${version}: mean ${number(evaluator["target_mean"])}`,
    `version ${against}: mean ${number(evaluator["baseline_mean"])}`,
    `difference: ${difference(evaluator)}`,
    `pairs: ${pairs}, of them ${wins} won, ${ties} tied, ${losses} lost`,
    `good answers: ${number(evaluator["good_rate"])}${rate === null ? "" : `, at least ${number(rate)} demanded`}`,
  ];
  if (evaluator["must_pass"]) {
    lines.push(`items that only version ${against} passes: ${evaluator["newly_failed_count"]}`);
  }
  for (const missing of evaluator["unscored"] as Entry[]) {
    const counts = `${missing["target"]} of version ${version}, ${missing["baseline"]} of version ${against}`;
    lines.push(`without a score (${missing["reason"]}): ${counts}`);
  }
  return lines.join("\n");
}

/** Returns whether an evaluator keeps the version from passing. */
export function fails(evaluator: Entry): boolean {
  return !evaluator["passes"] && Boolean(evaluator["required"] || evaluator["must_pass"]);
}
