// The run of a client's script in Node.js, as scripts/cases.py is for Python: the parent's plan comes in on standard
// input, and the results go as JSON into the file RESULTS.
import { readFileSync, writeFileSync } from "node:fs";

export const MODEL = process.env.MODEL ?? "sandbox/echo";
export const REASONING_MODEL = "sandbox/reasoning";
export const OTHER_TEXT = "Another text";
export const NEXT_PROMPT = "Go on";
const UNKNOWN_MODEL = "nobody/serves-this";
const WRONG_KEY = "svc_wrong";
// The gateway's bounds are 0 and 2 for the temperature, or 0 and 1 in Messages, and 0 and 1 for `top_p`.
const BAD_VALUE = 5;

export const weatherIn = (city) => `sunny in ${city}`;

/** A variant has the cases of its row in clients.py, as `Variant` and `Embeddings` of scripts/cases.py, and `ask(prompt, {key, model, bad})`, which is to be
 * refused: `bad` is a value that is out of bounds for a field of the client's. */
export async function run(variants) {
  const plan = JSON.parse(readFileSync(0, "utf8"));
  const results = {};
  for (const [name, prompt] of Object.entries(plan.cases)) {
    const [variant, method] = name.split(".");
    results[name] = await outcome(() => played(variants[variant], method, prompt));
  }
  for (const [name, path] of Object.entries(plan.snippets)) {
    results[name] = await outcome(() => printed(path));
  }
  writeFileSync(process.env.RESULTS, JSON.stringify(results));
}

const played = (variant, method, prompt) => {
  const refusals = {
    bad_key: { key: WRONG_KEY },
    unknown_model: { model: UNKNOWN_MODEL },
    bad_field: { bad: BAD_VALUE },
  };
  return method in refusals ? refused(variant, prompt, refusals[method]) : variant[method](prompt);
};

async function refused(variant, prompt, options) {
  let answer;
  try {
    answer = await variant.ask(prompt, { model: MODEL, ...options });
  } catch (error) {
    return {
      error: error.constructor.name,
      status: error.status ?? error.statusCode ?? null,
      message: error.message,
    };
  }
  return { text: `no error: ${JSON.stringify(answer)}` };
}

async function printed(path) {
  const lines = [];
  const log = console.log;
  console.log = (...words) => lines.push(words.join(" "));
  try {
    await import(path);
  } finally {
    console.log = log;
  }
  return { printed: lines.join("\n") };
}

async function outcome(make) {
  try {
    return await make();
  } catch (error) {
    return { traceback: `${error.stack}\n${JSON.stringify(error)}` };
  }
}
