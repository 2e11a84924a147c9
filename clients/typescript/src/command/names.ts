import { readFile } from "node:fs/promises";
import type { Entry, Service } from "./service.js";
import { NotRunError } from "./service.js";

const FLAGS: Record<string, Entry> = {
  required: { required: true },
  optional: { required: false },
  "must-pass": { must_pass: true },
};
const MIN_RATE = "min-rate=";

/** An evaluator as it is named in the command: `NAME[@VERSION]` and its options. */
export interface NamedEvaluator {
  name: string;
  options: Entry;
}

export interface Version {
  id: string;
  number: number;
}

/** Reads `NAME[@VERSION][:OPTION]…`. What is no option belongs to the name, which may have colons. Throws RangeError. */
export function namedEvaluator(text: string): NamedEvaluator {
  const options: Entry = {};
  let name = text;
  for (;;) {
    const colon = name.lastIndexOf(":");
    const option = name.slice(colon + 1);
    if (colon >= 0 && Object.hasOwn(FLAGS, option)) {
      Object.assign(options, FLAGS[option]);
    } else if (colon >= 0 && option.startsWith(MIN_RATE)) {
      options["min_rate"] = rate(option.slice(MIN_RATE.length));
    } else {
      break;
    }
    name = name.slice(0, colon);
  }
  if (name === "") {
    throw new RangeError(`'${text}' names no evaluator`);
  }
  return { name, options };
}

export function rate(text: string): number {
  const found = text.trim() === "" ? Number.NaN : Number(text);
  if (!(found >= 0 && found <= 1)) {
    throw new RangeError(`'${text}' is no number from 0 to 1`);
  }
  return found;
}

export async function findDataset(service: Service, name: string): Promise<Entry | undefined> {
  return (await service.listed("datasets")).find((entry) => entry["name"] === name);
}

export async function requireDataset(service: Service, name: string): Promise<Entry> {
  return required(await findDataset(service, name), `data set named '${name}'`);
}

export async function requireConfig(service: Service, name: string): Promise<Entry> {
  return required((await service.listed("prompts/configs", { name }))[0], `prompt config named '${name}'`);
}

/** Returns the version of this number, or the active one. */
export async function requireVersion(service: Service, config: Entry, number: number | null): Promise<Version> {
  if (number === null) {
    if (config["active_version_id"] === null) {
      throw new NotRunError("unknown_name", `The prompt config '${config["name"]}' has no active version.`);
    }
    return { id: config["active_version_id"], number: config["active_version_number"] };
  }
  const path = `prompts/configs/${config["id"]}/versions`;
  const [found] = await service.listed(path, { version_number: String(number) });
  return { id: required(found, `version ${number} of the prompt config '${config["name"]}'`)["id"], number };
}

/** Returns the version that has the file's content, and whether it was added just now. */
export async function pushVersion(service: Service, config: Entry, file: string): Promise<[Version, boolean]> {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await readFile(file));
  } catch (error) {
    throw unreadable(file, error);
  }
  const path = `prompts/configs/${config["id"]}/versions/from-file`;
  const { body, status } = await service.call("POST", path, { body: { name: file, text } });
  return [{ id: String(body["id"]), number: Number(body["version_number"]) }, status === 201];
}

export function unreadable(file: string, error: unknown): NotRunError {
  if (error instanceof TypeError) {
    return new NotRunError("unreadable_file", `${file} is not text in UTF-8.`);
  }
  return new NotRunError("unreadable_file", `${file} cannot be read: ${reason(error)}.`);
}

export function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns the evaluators as the body of an experiment has them. */
export async function requireEvaluators(service: Service, named: NamedEvaluator[]): Promise<Entry[]> {
  const there = new Map((await service.listed("evaluators")).map((entry) => [String(entry["name"]), entry]));
  return named.map((one) => evaluator(there, one));
}

function evaluator(there: Map<string, Entry>, { name, options }: NamedEvaluator): Entry {
  const whole = there.get(name);
  if (whole !== undefined) {
    return { evaluator_id: whole["id"], ...options };
  }
  const [, short, number] = /^(.+)@(\d+)$/s.exec(name) ?? [];
  const found = required(there.get(short ?? name), `evaluator named '${name}'`);
  const version = Number(number);
  required(
    found["versions"].find((one: Entry) => one["number"] === version),
    `version ${version} of the evaluator '${short}'`,
  );
  return { evaluator_id: found["id"], version, ...options };
}

function required(found: Entry | undefined, what: string): Entry {
  if (found === undefined) {
    throw new NotRunError("unknown_name", `The project has no ${what}.`);
  }
  return found;
}
