import { PromptGatewayError, UnavailableError } from "./errors.js";
import type { Answer } from "./http.js";
import type { Prompt } from "./prompt.js";
import { promptOf } from "./prompt.js";

const MAX_ENTRIES = 1000;
const MAX_REVALIDATIONS = 16;
const RETRY_SECONDS = 5;
const STALE_ON_ERROR_SECONDS = 86_400;
const NEVER = -Infinity;

class Entry {
  prompt: Prompt | undefined;
  etag = "";
  freshUntil = NEVER;
  staleUntil = NEVER;
  /** Until then the prompt is returned when no newer answer can be had. */
  usableUntil = NEVER;
  /** The error of the last fetch; none is begun again before `retryAt`. */
  error: PromptGatewayError | undefined;
  retryAt = NEVER;

  /** Returns the prompt if it may be returned at once: soon after it was fresh, or after a failure. */
  stale(now: number): Prompt | undefined {
    return now < (this.error === undefined ? this.staleUntil : this.usableUntil) ? this.prompt : undefined;
  }
}

/**
 * The prompts that were fetched: fresh, stale while the next answer is fetched, and stale while there is none.
 * One flight per prompt: however many callers wait, one read is made. Times are seconds of `clock`.
 */
export class PromptCache {
  readonly #entries = new Map<string, Entry>();
  readonly #flights = new Map<string, Promise<Prompt>>();

  constructor(readonly clock: () => number) {}

  /** Returns the prompt. `fetch` is called with the ETag of the last answer, or an empty text. */
  async get(key: string, fetch: (etag: string) => Promise<Answer>): Promise<Prompt> {
    const now = this.clock();
    const entry = this.#entry(key);
    if (entry.prompt !== undefined && now < entry.freshUntil) {
      return entry.prompt;
    }
    const stale = entry.stale(now);
    const mayFetch = now >= entry.retryAt && (stale === undefined || this.#flights.size < MAX_REVALIDATIONS);
    let flight = this.#flights.get(key);
    if (flight === undefined && mayFetch) {
      flight = this.#fly(key, entry, fetch);
      this.#flights.set(key, flight);
    }
    if (stale !== undefined) {
      // The failure is in the entry; a promise that nobody awaits must not be rejected.
      flight?.catch(() => undefined);
      return stale;
    }
    if (flight === undefined) {
      throw entry.error ?? new UnavailableError("Prompt Gateway gave no answer");
    }
    return this.#awaited(flight, entry);
  }

  async #awaited(flight: Promise<Prompt>, entry: Entry): Promise<Prompt> {
    try {
      return await flight;
    } catch (error) {
      const stale = error instanceof UnavailableError ? entry.stale(this.clock()) : undefined;
      if (stale === undefined) {
        throw error;
      }
      return stale;
    }
  }

  #entry(key: string): Entry {
    const entry = this.#entries.get(key) ?? new Entry();
    // A map keeps the order of insertion, so that the entry used longest ago is its first.
    this.#entries.delete(key);
    this.#entries.set(key, entry);
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= MAX_ENTRIES) {
        break;
      }
      this.#entries.delete(oldest);
    }
    return entry;
  }

  async #fly(key: string, entry: Entry, fetch: (etag: string) => Promise<Answer>): Promise<Prompt> {
    try {
      const answer = await fetch(entry.etag);
      const prompt = answer.status === 304 && entry.prompt !== undefined ? entry.prompt : promptOf(answer.body);
      if (prompt === undefined) {
        throw new UnavailableError("Prompt Gateway's answer is no prompt");
      }
      this.#store(entry, prompt, answer.headers);
      return prompt;
    } catch (error) {
      if (error instanceof PromptGatewayError) {
        entry.error = error;
        entry.retryAt = this.clock() + RETRY_SECONDS;
        if (!(error instanceof UnavailableError)) {
          // A refusal is an answer: what was fetched before does not count any more.
          entry.prompt = undefined;
          entry.etag = "";
        }
      }
      throw error;
    } finally {
      this.#flights.delete(key);
    }
  }

  #store(entry: Entry, prompt: Prompt, headers: Headers): void {
    const control = headers.get("cache-control") ?? "";
    entry.prompt = prompt;
    entry.error = undefined;
    entry.retryAt = NEVER;
    entry.etag = headers.get("etag") ?? "";
    entry.freshUntil = this.clock() + seconds(control, "max-age", 0);
    entry.staleUntil = entry.freshUntil + seconds(control, "stale-while-revalidate", 0);
    entry.usableUntil = entry.freshUntil + seconds(control, "stale-if-error", STALE_ON_ERROR_SECONDS);
  }
}

/** Returns the seconds of a directive of Cache-Control (RFC 9111, 5.2; RFC 5861). */
function seconds(control: string, directive: string, otherwise: number): number {
  const found = new RegExp(`(?:^|[\\s,])${directive}=(\\d{1,9})(?!\\d)`, "i").exec(control);
  return found === null ? otherwise : Number(found[1]);
}
