import { randomBytes } from "node:crypto";
import { PromptGatewayError, UnavailableError } from "../errors.js";
import type { Answer, Http } from "../http.js";
import type { NamedEvaluator, Version } from "./names.js";
import { pushVersion, reason, requireConfig, requireDataset, requireEvaluators, requireVersion } from "./names.js";
import { Outcome } from "./outcome.js";
import type { Entry, Note } from "./service.js";
import { InterruptedError, NotRunError, Service } from "./service.js";

const FIRST_LOOK_MS = 200;
const MAX_LOOK_MS = 5000;
const CANCEL_MS = 15_000;
const COMMAND_FAILED = "command_failed";
export const ENDED = "experiment_ended";
const UNFINISHED = ["pending", "running"];

export interface ExperimentOptions {
  url: string;
  dataset: string;
  config: string;
  version: number | null;
  promptFile: string | null;
  /** The number of a version; null for the active one. */
  against: number | null;
  evaluators: NamedEvaluator[];
  items: number | null;
  repeats: number;
  margin: number;
  failOn: string;
  maxCost: string | null;
  noReuse: boolean;
  timeoutMs: number;
}

/** Makes an experiment, waits for its end, and cancels it when nobody waits any more. */
export class ExperimentRun {
  protected readonly service: Service;
  protected readonly outcome: Outcome;
  /** By this name an experiment is found whose answer was lost. */
  #name = "";

  constructor(
    http: Http,
    readonly options: ExperimentOptions,
    readonly note: Note,
    interrupted: AbortSignal,
  ) {
    this.service = new Service(http, options.timeoutMs, note, interrupted);
    this.outcome = new Outcome(options.config, options.failOn);
  }

  /** Returns what was found. Whatever goes wrong is the outcome's error. */
  async run(): Promise<Outcome> {
    try {
      await this.attempt();
    } catch (error) {
      await this.#fail(error);
    }
    return this.outcome;
  }

  protected async attempt(): Promise<void> {
    const { options } = this;
    const { service, outcome } = this;
    const dataset = await requireDataset(service, options.dataset);
    const config = await requireConfig(service, options.config);
    const evaluators = await requireEvaluators(service, options.evaluators);
    const baseline = await requireVersion(service, config, options.against);
    const target = await this.#target(config);
    outcome.version = target.number;
    outcome.against = baseline.number;
    if (target.id === baseline.id) {
      this.note(`Version ${target.number} of ${options.config} would be compared with itself: nothing to try.`);
      return;
    }
    await this.create(dataset["id"], evaluators, [{ version_id: baseline.id }, { version_id: target.id }]);
    await this.wait();
    this.requireVerdict();
  }

  async #target(config: Entry): Promise<Version> {
    const { promptFile, version } = this.options;
    if (promptFile === null) {
      return requireVersion(this.service, config, version);
    }
    const [found, isNew] = await pushVersion(this.service, config, promptFile);
    this.note(`${promptFile} is ${isNew ? "now " : ""}version ${found.number} of ${config["name"]}.`);
    return found;
  }

  protected async create(datasetId: string, evaluators: Entry[], candidates: Entry[]): Promise<void> {
    const { options } = this;
    this.#name = `${this.outcome.title} (${randomBytes(4).toString("hex")})`;
    const body = {
      name: this.#name,
      dataset_id: datasetId,
      candidates,
      baseline: candidates.length > 1 ? "A" : null,
      evaluators,
      repeats: options.repeats,
      margin: options.margin,
      reuse: !options.noReuse,
      ...(options.items === null ? {} : { item_limit: options.items }),
      ...(options.maxCost === null ? {} : { max_cost_usd: Number(options.maxCost) }),
    };
    this.#take((await this.service.call("POST", "experiments", { body }, () => this.#made())).body);
    this.note(`Experiment ${this.#name}: ${this.outcome.url}`);
  }

  /** Returns the experiment that was made by a call whose answer did not arrive. */
  async #made(): Promise<Answer | undefined> {
    const answer = await this.service.send("GET", "experiments");
    const entries = answer.body["results"] as Entry[];
    const found = entries.find((entry) => entry["name"] === this.#name);
    return found === undefined ? undefined : { ...answer, body: found };
  }

  protected async wait(): Promise<void> {
    let wait = FIRST_LOOK_MS;
    let told = "";
    while (UNFINISHED.includes(this.outcome.field("state"))) {
      if (this.service.msLeft <= 0) {
        throw this.late();
      }
      await this.service.sleep(Math.max(0, Math.min(wait, this.service.msLeft)));
      wait = Math.min(1.5 * wait, MAX_LOOK_MS);
      await this.#look();
      const entry = this.outcome.experiment ?? {};
      const line = `${entry["state"]}: ${entry["done_count"]} of ${entry["answer_count"]} answers`;
      if (line !== told) {
        told = line;
        this.note(line);
      }
    }
  }

  protected late(): NotRunError {
    return new NotRunError("timeout", `The experiment did not end in ${this.options.timeoutMs / 1000} seconds.`);
  }

  async #look(): Promise<void> {
    this.#take(await this.service.get(`experiments/${this.outcome.field("id")}`));
  }

  protected requireVerdict(): void {
    const state: string = this.outcome.field("state");
    if (state === "failed") {
      const message: string = this.outcome.field("failure") ?? "The experiment failed.";
      throw new NotRunError(this.outcome.field("failure_code") ?? "failed", message);
    }
    if (state !== "completed") {
      throw new NotRunError(state, `The experiment was ${state}.`);
    }
    if (this.outcome.field("verdict") === null) {
      throw new NotRunError("no_verdict", "The experiment ended without a verdict.");
    }
  }

  #take(entry: Entry): void {
    this.outcome.experiment = entry;
    this.outcome.url = `${this.options.url.replace(/\/+$/, "")}/admin/experiments/${entry["id"]}/`;
  }

  async #fail(error: unknown): Promise<void> {
    const isLate = error instanceof UnavailableError && this.service.msLeft <= 0;
    const code = isLate ? "timeout" : codeOf(error);
    const isUnexpected = code === COMMAND_FAILED;
    const message = messageOf(error);
    this.note(isUnexpected ? traceOf(error) : message);
    if ((code === "timeout" || isUnexpected || error instanceof InterruptedError) && this.#name !== "") {
      await this.#cancel();
    }
    this.outcome.error = { code, message };
  }

  /** Ends the experiment, so that nothing more is paid for it. */
  async #cancel(): Promise<void> {
    const service = this.service;
    service.deadline = performance.now() + CANCEL_MS;
    service.interrupted = undefined;
    try {
      if (this.outcome.experiment === null) {
        const none: Answer = { status: 404, headers: new Headers(), body: {} };
        const found = await service.untilAnswered(async () => (await this.#made()) ?? none);
        if (found === none) {
          return;
        }
        this.#take(found.body);
      }
      try {
        await service.call("POST", `experiments/${this.outcome.field("id")}/cancel`, { body: {} });
        this.note("The experiment is cancelled.");
      } catch (error) {
        if (codeOf(error) !== ENDED) {
          throw error;
        }
      }
      await this.#look();
    } catch (error) {
      this.note(`The experiment could not be cancelled, and goes on: ${error instanceof Error ? error.message : error}.`);
    }
  }
}

/** Returns the code of an error; what the command did not expect, such as an answer that lacks a field, has one too. */
export function codeOf(error: unknown): string {
  if (error instanceof NotRunError) {
    return error.code;
  }
  if (error instanceof PromptGatewayError) {
    return error.code === "" ? "unavailable" : error.code;
  }
  return COMMAND_FAILED;
}

export function messageOf(error: unknown): string {
  return codeOf(error) === COMMAND_FAILED ? `The command failed: ${error}` : reason(error);
}

export function traceOf(error: unknown): string {
  return error instanceof Error && error.stack !== undefined ? error.stack : String(error);
}
