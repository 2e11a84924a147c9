import { PromptCache } from "./cache.js";
import { PromptGatewayError, UnavailableError } from "./errors.js";
import type { Answer } from "./http.js";
import { Http } from "./http.js";
import type { Prompt } from "./prompt.js";
import { fallbackPrompt } from "./prompt.js";

const NOT_FOUND = 404;

export interface ClientOptions {
  baseUrl: string;
  apiKey: string;
  projectId: string;
  /** Bounds a call, in milliseconds; 5,000 without it. */
  timeoutMs?: number;
  /** Gives the seconds by which prompts become old. */
  clock?: () => number;
}

export interface PromptOptions {
  label?: string;
  version?: number;
  variables?: Record<string, unknown>;
  userId?: string;
  sessionId?: string;
  /** A prompt or a system's text for when there is no usable answer, or the service knows no such prompt. */
  fallback?: Prompt | string;
}

export interface Feedback {
  /** A whole number from 1 to 5. */
  score?: number;
  text?: string;
  /** The request whose answer it is about, as that answer's header `x-request-id` names it. */
  requestId?: string;
  /** True: the answer to this request was changed before it was used. */
  edited?: boolean;
  /** A token of the session or the request, which a key with no scope but `feedback:write` needs. */
  token?: string;
}

/** A score as `POST /api/llm/scores` takes it, without the project. */
export interface Score {
  request_id: string;
  score_name: string;
  score_value: number | boolean;
  score_type?: "number" | "boolean" | "category";
  score_label?: string;
  reason?: string;
  evaluator_type?: string;
  judge_model?: string;
  score_id?: string;
}

/** A client of one project: one for the whole application, so that all of it shares prompts. */
export class PromptGateway {
  readonly #http: Http;
  readonly #projectId: string;
  readonly #prompts: PromptCache;

  constructor(options: ClientOptions) {
    this.#http = new Http(options.baseUrl, options.apiKey, options.projectId, options.timeoutMs ?? 5000);
    this.#projectId = options.projectId;
    this.#prompts = new PromptCache(options.clock ?? (() => performance.now() / 1000));
  }

  /**
   * Returns the prompt that `label` or `version` names, or the active one, which a rollout decides for the user or the
   * session. With `variables` it is rendered. Without a `fallback` it throws UnavailableError when there is no usable
   * answer and none was kept; PromptGatewayError for what is wrong in the call, as a missing variable.
   */
  async getPrompt(name: string, options: PromptOptions = {}): Promise<Prompt> {
    const { fallback, ...question } = options;
    const key = JSON.stringify([name, question], (_, value: unknown) => sorted(value));
    try {
      return await this.#prompts.get(key, (etag) => this.#fetch(name, question, etag));
    } catch (error) {
      const isAway = error instanceof UnavailableError;
      if (fallback === undefined || !(isAway || (error instanceof PromptGatewayError && error.status === NOT_FOUND))) {
        throw error;
      }
      return typeof fallback === "string" ? fallbackPrompt(name, fallback) : fallback;
    }
  }

  /** Gives feedback on a session, or on the answer to one of its requests: a score, a text, or that it was edited. */
  async feedback(sessionId: string, { token, requestId, ...given }: Feedback): Promise<void> {
    const headers: Record<string, string> = token === undefined ? {} : { "x-svc-feedback-token": token };
    const body = { project_id: this.#projectId, ...given, ...named(requestId) };
    await this.#http.send("POST", `sessions/${encodeURIComponent(sessionId)}/feedback`, { body, headers });
  }

  /**
   * Returns a token with which a browser gives feedback on this session, or on the answer to one request alone, for
   * `expiresIn` seconds.
   */
  async feedbackToken(sessionId: string, expiresIn = 3600, requestId?: string): Promise<string> {
    const path = `sessions/${encodeURIComponent(sessionId)}/feedback-token`;
    const answer = await this.#http.send("POST", path, { body: { expires_in: expiresIn, ...named(requestId) } });
    return String(answer.body["token"]);
  }

  /** Records a score of a request. */
  async score(score: Score): Promise<void> {
    await this.#http.send("POST", "scores", { body: { project_id: this.#projectId, ...score } });
  }

  async #fetch(name: string, options: Omit<PromptOptions, "fallback">, etag: string): Promise<Answer> {
    const { label, version, variables, userId: user_id, sessionId: session_id } = options;
    const question = Object.entries({ label, version, user_id, session_id }).filter(([, value]) => value !== undefined);
    if (variables !== undefined) {
      // Values are sent in a body: proxies and logs keep URLs.
      const body = { ...Object.fromEntries(question), variables };
      return this.#http.send("POST", `prompts/${encodeURIComponent(name)}/render`, { body });
    }
    const query = Object.fromEntries([["name", name], ...question.map(([field, value]) => [field, String(value)])]);
    return this.#http.send("GET", "prompts", { query, headers: etag === "" ? {} : { "If-None-Match": etag } });
  }
}

/** Returns the field of a body that names a request; a service of an older version knows no such field. */
function named(requestId: string | undefined): { request_id?: string } {
  return requestId === undefined ? {} : { request_id: requestId };
}

/** Returns an object with its members in the order of their names, so that equal questions have equal texts. */
function sorted(value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return value;
  }
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
