import { difference, fails, inWords } from "./figures.js";
import type { Outcome } from "./outcome.js";
import type { Entry } from "./service.js";

/** XML 1.0 can hold neither these characters nor their escapes. */
const NO_XML = /[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

interface Case {
  name: string;
  kind?: "failure" | "error" | "skipped";
  type?: string;
  message?: string;
  text?: string;
}

/** Returns a JUnit file: a test case for each evaluator, and for each item that newly failed one that has to pass. */
export function junit(outcome: Outcome): string {
  const cases = [...casesOf(outcome)];
  const count = (kind: string) => String(cases.filter((one) => one.kind === kind).length);
  const suite = attributes({
    id: "0",
    name: `experiment ${outcome.title}`,
    package: "experiments",
    timestamp: String(outcome.field("started_at") ?? "1970-01-01T00:00:00").slice(0, 19),
    hostname: outcome.url === null ? "localhost" : new URL(outcome.url).hostname,
    tests: String(cases.length),
    failures: count("failure"),
    errors: count("error"),
    skipped: count("skipped"),
    time: seconds(outcome).toFixed(3),
  });
  const shown = outcome.asJson();
  const properties = ["verdict", "experiment_id", "url", "cost_usd"].map(
    (name) => `      <property${attributes({ name, value: String(shown[name] ?? "") })} />`,
  );
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    "<testsuites>",
    `  <testsuite${suite}>`,
    "    <properties>",
    ...properties,
    "    </properties>",
    ...cases.map((one) => written(one, `experiments.${outcome.config}`)),
    `    <system-out>${escaped(outcome.target?.["explanation"] ?? "")}</system-out>`,
    `    <system-err>${escaped(outcome.error?.message ?? "")}</system-err>`,
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

function* casesOf(outcome: Outcome): Generator<Case> {
  if (outcome.error !== null) {
    const { code, message } = outcome.error;
    yield { name: "run", kind: "error", type: code, message, text: message };
    return;
  }
  // What does not fail the command is no failure in its file either.
  const kind = outcome.exitCode === 0 ? "skipped" : "failure";
  for (const evaluator of (outcome.target?.["evaluators"] ?? []) as Entry[]) {
    const [name, verdict] = [String(evaluator["title"]), outcome.verdict ?? ""];
    const text = inWords(evaluator, outcome.version, outcome.against);
    const message = `${verdict}: difference ${difference(evaluator)}`;
    yield fails(evaluator) ? { name, kind, type: verdict, message, text } : { name };
    for (const position of evaluator["must_pass"] ? evaluator["newly_failed"] : []) {
      const found = `version ${outcome.against} passes, version ${outcome.version} does not`;
      const words = `item ${position}: ${found}\n${text}`;
      yield { name: `${name}: item ${position}`, kind, type: "newly_failed", message: found, text: words };
    }
  }
}

function written({ name, kind, type, message, text }: Case, classname: string): string {
  const opening = `    <testcase${attributes({ name, classname, time: "0" })}`;
  if (kind === undefined) {
    return `${opening} />`;
  }
  const inner =
    kind === "skipped"
      ? `<skipped${attributes({ message: message ?? "" })} />`
      : `<${kind}${attributes({ type: type ?? "", message: message ?? "" })}>${escaped(text ?? "")}</${kind}>`;
  return `${opening}>\n      ${inner}\n    </testcase>`;
}

function seconds(outcome: Outcome): number {
  const [begun, ended] = [outcome.field("started_at"), outcome.field("ended_at")];
  return begun === null || ended === null ? 0 : (Date.parse(ended) - Date.parse(begun)) / 1000;
}

function attributes(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([name, value]) => ` ${name}="${escaped(value).replaceAll('"', "&quot;").replaceAll("\n", "&#10;")}"`)
    .join("");
}

function escaped(text: string): string {
  const clean = text.replace(NO_XML, "\ufffd");
  return clean.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
