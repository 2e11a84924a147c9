import { writeFile } from "node:fs/promises";
import { parseArgs } from "node:util";
import { Http } from "../http.js";
import { push } from "./dataset.js";
import type { ExperimentOptions } from "./experiment.js";
import { codeOf, ExperimentRun, messageOf, traceOf } from "./experiment.js";
import { junit } from "./junit.js";
import { markdown } from "./markdown.js";
import { namedEvaluator, rate, reason } from "./names.js";
import type { Outcome } from "./outcome.js";
import { NOT_RUN, PASSED } from "./outcome.js";
import type { Entry } from "./service.js";

const ANSWER_MS = 30_000;
const UPLOAD_SECONDS = 600;
const HOUR_SECONDS = 3600;
const SERVICE = `  --url URL             address of the service; PROMPT_GATEWAY_URL without it
  --api-key KEY         key with the scope manage; PROMPT_GATEWAY_API_KEY without it
  --project-id ID       the key's project; PROMPT_GATEWAY_PROJECT_ID without it
  --timeout SECONDS     `;
const RUN = `usage: svc experiments run --dataset NAME --config NAME (--version N | --prompt-file FILE)
                           --evaluator NAME[@VERSION][:required|:optional|:must-pass|:min-rate=0.9] ...

Compares a version of a prompt with another one over a data set. Exit code 0: passed, 1: worse, 2: undecided,
3: not run. Standard output has one JSON object.

  --prompt-file FILE    file (.yaml, .json, .md) to try, which becomes a version if it is none
  --against VERSION     active (default), or a number
  --evaluator NAME      may be repeated; required unless it is optional
  --items N             at most so many items; 400 without it
  --repeats N           answers to each item, 1 to 5
  --margin LOSS         the loss of the mean score that does no harm; 0.1 without it
  --fail-on WHAT        worse, or not-passing (default)
  --max-cost USD        US dollars that the experiment may cost at most
  --no-reuse            take no answers of earlier experiments
  --junit FILE          write a JUnit file
  --markdown FILE       write a comment for a pull request
${SERVICE}${HOUR_SECONDS} by default
`;
const PUSH = `usage: svc datasets push FILE --dataset NAME

Adds the lines of a file that a data set does not have: all, as one version, or none.

  --dataset NAME        the data set, which is made if there is none
${SERVICE}${UPLOAD_SECONDS} by default
`;
const TEXT = { type: "string" } as const;
const FLAG = { type: "boolean" } as const;
const OF_SERVICE = { url: TEXT, "api-key": TEXT, "project-id": TEXT, timeout: TEXT, dataset: TEXT, help: FLAG };
const OF_RUN = {
  ...OF_SERVICE,
  config: TEXT,
  version: TEXT,
  "prompt-file": TEXT,
  against: TEXT,
  evaluator: { type: "string", multiple: true },
  items: TEXT,
  repeats: TEXT,
  margin: TEXT,
  "fail-on": TEXT,
  "max-cost": TEXT,
  "no-reuse": FLAG,
  junit: TEXT,
  markdown: TEXT,
} as const;

type Values = Record<string, string | boolean | string[] | undefined>;

class UsageError extends Error {}

/** Runs `svc`, and returns its exit code. */
export async function main(given: string[]): Promise<number> {
  const command = given.slice(0, 2).join(" ");
  const usage = { "experiments run": RUN, "datasets push": PUSH }[command];
  if (usage === undefined || given.includes("--help") || given.includes("-h")) {
    const isAsked = given.includes("--help") || given.includes("-h");
    (isAsked ? process.stdout : process.stderr).write(usage ?? `${RUN}\n${PUSH}`);
    return isAsked ? PASSED : NOT_RUN;
  }
  try {
    return usage === RUN ? await run(given.slice(2)) : await pushFile(given.slice(2));
  } catch (error) {
    // parseArgs has codes of its own for what it does not understand.
    if (!(error instanceof UsageError) && !String((error as Entry)["code"]).startsWith("ERR_PARSE_ARGS")) {
      throw error;
    }
    process.stderr.write(`${usage.split("\n\n")[0]}\nsvc: ${(error as Error).message}\n`);
    return NOT_RUN;
  }
}

async function run(given: string[]): Promise<number> {
  const values: Values = parseArgs({ args: given, options: OF_RUN }).values;
  const program = new Program(values, HOUR_SECONDS);
  const options = experimentOptions(values, program);
  const http = program.http(Math.min(ANSWER_MS, program.timeoutMs));
  const outcome = await new ExperimentRun(http, options, program.note, program.interrupted).run();
  const written = texts(values, program, outcome);
  program.print(outcome.asJson());
  let isWritten = true;
  for (const [file, text] of written) {
    isWritten = (await program.write(file, text)) && isWritten;
  }
  return isWritten ? outcome.exitCode : NOT_RUN;
}

/** Returns the files and what is written to them. A report of which none can be made is the outcome's error. */
function texts(values: Values, program: Program, outcome: Outcome): [file: string, text: string][] {
  try {
    return [[values["junit"], junit] as const, [values["markdown"], markdown] as const].flatMap(([file, made]) =>
      typeof file === "string" ? [[file, made(outcome)]] : [],
    );
  } catch (error) {
    program.note(traceOf(error));
    outcome.error = { code: codeOf(error), message: messageOf(error) };
    return [];
  }
}

async function pushFile(given: string[]): Promise<number> {
  const { values, positionals } = parseArgs({ args: given, options: OF_SERVICE, allowPositionals: true });
  const program = new Program(values, UPLOAD_SECONDS);
  const [file] = positionals;
  if (file === undefined || positionals.length > 1) {
    throw new UsageError("FILE is needed, and no other argument");
  }
  const options = { file, dataset: text(values, "dataset"), timeoutMs: program.timeoutMs };
  try {
    program.print(await push(program.http(options.timeoutMs), options, program.note, program.interrupted));
    return PASSED;
  } catch (error) {
    const found = { code: codeOf(error), message: messageOf(error) };
    program.note(found.message);
    program.print({ error: found });
    return NOT_RUN;
  }
}

function experimentOptions(values: Values, program: Program): ExperimentOptions {
  const evaluators = values["evaluator"];
  if (!Array.isArray(evaluators)) {
    throw new UsageError("--evaluator is needed");
  }
  if ((values["version"] === undefined) === (values["prompt-file"] === undefined)) {
    throw new UsageError("one of --version and --prompt-file is needed");
  }
  const failOn = values["fail-on"] ?? "not-passing";
  if (failOn !== "worse" && failOn !== "not-passing") {
    throw new UsageError("--fail-on is worse or not-passing");
  }
  return {
    url: program.url,
    dataset: text(values, "dataset"),
    config: text(values, "config"),
    version: read(values, "version", whole),
    promptFile: read(values, "prompt-file", String),
    against: values["against"] === "active" ? null : read(values, "against", whole),
    evaluators: evaluators.map((one) => understood("evaluator", () => namedEvaluator(one))),
    items: read(values, "items", whole),
    repeats: read(values, "repeats", whole) ?? 1,
    margin: read(values, "margin", rate) ?? 0.1,
    failOn,
    maxCost: read(values, "max-cost", money),
    noReuse: values["no-reuse"] === true,
    timeoutMs: program.timeoutMs,
  };
}

/** The service that is asked, and what goes where: one object to standard output, progress to standard error. */
class Program {
  readonly url: string;
  readonly timeoutMs: number;
  readonly #key: string;
  readonly #project: string;
  readonly #interrupting = new AbortController();

  constructor(values: Values, timeout: number) {
    this.url = ofService(values, "url", "PROMPT_GATEWAY_URL");
    this.#key = ofService(values, "api-key", "PROMPT_GATEWAY_API_KEY");
    this.#project = ofService(values, "project-id", "PROMPT_GATEWAY_PROJECT_ID");
    this.timeoutMs = (read(values, "timeout", seconds) ?? timeout) * 1000;
    if (!/^https?:\/\//.test(this.url)) {
      throw new UsageError("--url has to begin with http:// or https://");
    }
    // Pipelines are cancelled with SIGTERM: what Ctrl-C does has to happen then, too. The second one ends at once.
    for (const name of ["SIGINT", "SIGTERM"]) {
      process.once(name, () => this.#interrupting.abort());
    }
  }

  get interrupted(): AbortSignal {
    return this.#interrupting.signal;
  }

  http(timeoutMs: number): Http {
    return new Http(this.url, this.#key, this.#project, timeoutMs);
  }

  note = (line: string): void => {
    process.stderr.write(`${this.#withoutKey(line)}\n`);
  };

  print(found: Entry): void {
    process.stdout.write(`${this.#withoutKey(JSON.stringify(found))}\n`);
  }

  async write(file: string, content: string): Promise<boolean> {
    try {
      await writeFile(file, this.#withoutKey(content));
      return true;
    } catch (error) {
      this.note(`${file} cannot be written: ${reason(error)}.`);
      return false;
    }
  }

  #withoutKey(content: string): string {
    return content.replaceAll(this.#key, "[key]");
  }
}

function ofService(values: Values, name: string, variable: string): string {
  const found = values[name] || process.env[variable];
  if (typeof found !== "string" || found === "") {
    throw new UsageError(`--${name} or ${variable} is needed`);
  }
  return found;
}

function text(values: Values, name: string): string {
  const found = values[name];
  if (typeof found !== "string") {
    throw new UsageError(`--${name} is needed`);
  }
  return found;
}

function read<T>(values: Values, name: string, reader: (given: string) => T): T | null {
  return values[name] === undefined ? null : understood(name, () => reader(text(values, name)));
}

function understood<T>(name: string, reader: () => T): T {
  try {
    return reader();
  } catch (error) {
    throw error instanceof RangeError ? new UsageError(`--${name}: ${error.message}`) : error;
  }
}

function whole(given: string): number {
  if (!/^[0-9]+$/.test(given) || Number(given) < 1) {
    throw new RangeError(`'${given}' is no whole number from 1 on`);
  }
  return Number(given);
}

function seconds(given: string): number {
  if (!(Number(given) > 0) || !Number.isFinite(Number(given))) {
    throw new RangeError(`'${given}' is no number of seconds`);
  }
  return Number(given);
}

/** Returns the amount as it was written: it is sent as a decimal text. */
function money(given: string): string {
  if (!/^[0-9]*\.?[0-9]+$/.test(given) || !(Number(given) > 0)) {
    throw new RangeError(`'${given}' is no amount of US dollars`);
  }
  return given;
}
