import { UnavailableError } from "../errors.js";
import type { Answer, Call, Http } from "../http.js";

/** Without any answer for so long, a call is given up. */
const PATIENCE_MS = 60_000;
const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 10_000;
const PAGE = 1000;

/** An object of an answer, whose fields are read by their names. */
export type Entry = Record<string, any>;
export type Note = (line: string) => void;

/** There is no verdict: `code` says why, as the codes of the API do. */
export class NotRunError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

export class InterruptedError extends NotRunError {
  constructor() {
    super("interrupted", "The command was interrupted.");
  }
}

/** Sends calls until there is an answer, the deadline is over, or there was none for a minute. */
export class Service {
  deadline: number;

  constructor(
    readonly http: Http,
    timeoutMs: number,
    readonly note: Note,
    /** Ends all waiting; undefined where nothing may end it. */
    public interrupted: AbortSignal | undefined,
  ) {
    this.deadline = performance.now() + timeoutMs;
  }

  get msLeft(): number {
    return this.deadline - performance.now();
  }

  async get(path: string, query: Record<string, string> = {}): Promise<Entry> {
    return (await this.call("GET", path, { query })).body;
  }

  /** Returns the answer. Before a call is sent again, `done` returns the answer if the service has done it already. */
  async call(method: string, path: string, call: Call, done?: () => Promise<Answer | undefined>): Promise<Answer> {
    return this.untilAnswered(() => this.send(method, path, call), done);
  }

  async send(method: string, path: string, call: Call = {}): Promise<Answer> {
    const signal = this.interrupted;
    return this.http.send(method, path, signal === undefined ? call : { ...call, signal });
  }

  async untilAnswered(send: () => Promise<Answer>, done?: () => Promise<Answer | undefined>): Promise<Answer> {
    const giveUp = Math.min(this.deadline, performance.now() + PATIENCE_MS);
    let wait = FIRST_WAIT_MS;
    for (let wasSent = false; ; wasSent = true) {
      this.#requireGoingOn();
      try {
        return (wasSent ? await done?.() : undefined) ?? (await send());
      } catch (error) {
        this.#requireGoingOn();
        if (!(error instanceof UnavailableError) || performance.now() + wait > giveUp) {
          throw error;
        }
        this.note(`${error.message}. Trying again in ${wait / 1000} seconds.`);
      }
      await this.sleep(wait);
      wait = Math.min(2 * wait, MAX_WAIT_MS);
    }
  }

  async listed(path: string, query: Record<string, string> = {}, limit = PAGE): Promise<Entry[]> {
    const found: Entry[] = [];
    for (;;) {
      const page = await this.get(path, { limit: String(limit), offset: String(found.length), ...query });
      found.push(...page["results"]);
      if (page["results"].length === 0 || found.length >= page["count"]) {
        return found;
      }
    }
  }

  async sleep(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.interrupted?.addEventListener("abort", () => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.#requireGoingOn();
  }

  #requireGoingOn(): void {
    if (this.interrupted?.aborted === true) {
      throw new InterruptedError();
    }
  }
}
