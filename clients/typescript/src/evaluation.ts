/** Runs an application over a data set, and has the service score and compare its answers. Needs Node.js. */

import type { ClientOptions } from "./client.js";
import type { ExperimentOptions } from "./command/experiment.js";
import { codeOf, ENDED, ExperimentRun } from "./command/experiment.js";
import { namedEvaluator, requireDataset, requireEvaluators } from "./command/names.js";
import type { Outcome } from "./command/outcome.js";
import type { Entry, Note } from "./command/service.js";
import { NotRunError } from "./command/service.js";
import { Http } from "./http.js";

const MAX_ERROR_CHARACTERS = 1000;
const CALL_MS = 30_000;
/** Pages of items with their texts, which have to fit into an answer of the service. */
const LARGE_ITEMS = 100;
const HOUR_MS = 3_600_000;
const GIVEN = "answer_given";

/** An input of the data set. Calls of the gateway that send `headers` form one session of the request log. */
export interface EvaluationItem {
  id: string;
  messages: Entry[];
  variables: Entry;
  parameters: Entry;
  expected: any;
  tags: string[];
  sessionId: string;
  headers: Record<string, string>;
}

/** The fields of an answer, as the API takes them; a text is its `content`. */
export interface ApplicationAnswer {
  content?: string | null;
  tool_calls?: Entry[];
  request_id?: string;
  model?: string;
  cost_usd?: number;
  latency_ms?: number;
  prompt_tokens?: number;
  completion_tokens?: number;
}

/** What it throws is an answer that counts as a bad one. */
export type Application = (
  item: EvaluationItem,
) => string | ApplicationAnswer | Promise<string | ApplicationAnswer>;

export interface EvaluationOptions extends ClientOptions {
  /** The name of the data set. */
  dataset: string;
  /** The version of your application. */
  name: string;
  /** Written as for `svc experiments run`. */
  evaluators: string[];
  /** An earlier version, whose answers are there, or a candidate of the gateway such as `{ model: "openai/gpt-4o" }`. */
  against?: string | Entry;
  items?: number;
  repeats?: number;
  margin?: number;
  failOn?: "worse" | "not-passing";
  maxCost?: number;
  reuse?: boolean;
  /** How many items are answered at the same time; 4 without it. */
  parallel?: number;
  note?: Note;
}

/**
 * Runs your own code over the items of a data set; the service scores its answers and gives a verdict. The outcome has
 * the same report and exit code as `svc experiments run`; whatever goes wrong is its `error`. `timeoutMs` bounds the
 * whole run. The key needs the scope `manage`.
 */
export async function evaluate(application: Application, options: EvaluationOptions): Promise<Outcome> {
  const timeoutMs = options.timeoutMs ?? HOUR_MS;
  const http = new Http(options.baseUrl, options.apiKey, options.projectId, Math.min(timeoutMs, CALL_MS));
  const given: ExperimentOptions = {
    url: options.baseUrl,
    dataset: options.dataset,
    config: options.name,
    version: null,
    promptFile: null,
    against: null,
    evaluators: options.evaluators.map(namedEvaluator),
    items: options.items ?? null,
    repeats: options.repeats ?? 1,
    margin: options.margin ?? 0.1,
    failOn: options.failOn ?? "not-passing",
    maxCost: options.maxCost === undefined ? null : String(options.maxCost),
    noReuse: options.reuse === false,
    timeoutMs,
  };
  const note = options.note ?? (() => undefined);
  return new Evaluation(http, given, note, application, options.against, options.parallel ?? 4).run();
}

class Evaluation extends ExperimentRun {
  #hasEnded = false;

  constructor(
    http: Http,
    options: ExperimentOptions,
    note: Note,
    readonly application: Application,
    readonly against: string | Entry | undefined,
    readonly parallel: number,
  ) {
    super(http, options, note, new AbortController().signal);
  }

  protected override async attempt(): Promise<void> {
    const { service, options, against } = this;
    const dataset = await requireDataset(service, options.dataset);
    const evaluators = await requireEvaluators(service, options.evaluators);
    const baseline = typeof against === "string" ? { application: against } : against;
    const candidates = [...(baseline === undefined ? [] : [baseline]), { application: options.config }];
    await this.create(dataset["id"], evaluators, candidates);
    await this.#answerAll(baseline === undefined ? "A" : "B");
    await this.wait();
    if (this.outcome.field("baseline") !== null) {
      this.requireVerdict();
    }
  }

  async #answerAll(label: string): Promise<void> {
    const items = await this.service.listed(`experiments/${this.outcome.field("id")}/items`);
    const awaited = items.flatMap((item) =>
      item["answers"].filter((one: Entry) => one["state"] === "awaited").map((one: Entry) => ({ item, one })),
    );
    const missing = awaited.filter(({ one }) => one["label"] !== label).length;
    if (missing > 0) {
      throw new NotRunError(
        "no_answers",
        `'${this.against}' has no answers to ${missing} of the items: evaluate it first.`,
      );
    }
    const inputs = await this.#inputs();
    this.note(`${this.options.config} answers ${awaited.length} times`);
    const work = async (): Promise<void> => {
      for (let next = awaited.shift(); next !== undefined && !this.#hasEnded; next = awaited.shift()) {
        if (this.service.msLeft <= 0) {
          throw this.late();
        }
        await this.#answer(label, next.item, next.one["repeat"], inputs);
      }
    };
    await Promise.all(Array.from({ length: this.parallel }, work));
  }

  async #inputs(): Promise<Map<string, Entry>> {
    const { id, version } = this.outcome.field("dataset");
    const entries = await this.service.listed(`datasets/${id}/items`, { version: String(version) }, LARGE_ITEMS);
    return new Map(entries.map((entry) => [entry["id"], entry]));
  }

  async #answer(label: string, item: Entry, repeat: number, inputs: Map<string, Entry>): Promise<void> {
    const entry = inputs.get(item["dataset_item_id"]);
    if (entry === undefined) {
      // It was erased meanwhile, and is not awaited any more.
      return;
    }
    const id: string = this.outcome.field("id");
    const sessionId = `evaluation-${id}-${item["position"]}-${repeat}`;
    const body = { label, repeat, ...(await answered(this.application, itemOf(entry, sessionId))) };
    try {
      await this.service.call("PUT", `experiments/${id}/items/${item["position"]}/answer`, { body });
    } catch (error) {
      const code = codeOf(error);
      if (code !== ENDED && code !== GIVEN) {
        throw error;
      }
      // An experiment that is sure of its verdict stops early.
      this.#hasEnded ||= code === ENDED;
    }
  }
}

function itemOf(entry: Entry, sessionId: string): EvaluationItem {
  return {
    id: entry["id"],
    messages: entry["messages"],
    variables: entry["variables"] ?? {},
    parameters: entry["parameters"] ?? {},
    expected: entry["expected"],
    tags: entry["tags"],
    sessionId,
    headers: { "x-svc-session-id": sessionId },
  };
}

async function answered(application: Application, item: EvaluationItem): Promise<Entry> {
  const began = performance.now();
  let given: Entry;
  try {
    const found = await application(item);
    given = typeof found === "string" ? { content: found } : { ...found };
  } catch (error) {
    given = { error: String(error).slice(0, MAX_ERROR_CHARACTERS) };
  }
  return { latency_ms: Math.round(performance.now() - began), ...given };
}
