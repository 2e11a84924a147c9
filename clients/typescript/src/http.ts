import { PromptGatewayError, UnavailableError } from "./errors.js";
import { isObject } from "./prompt.js";

const NO_CONTENT = 204;
const NOT_MODIFIED = 304;
const TRY_LATER = [408, 425, 429];

/** A success. `body` is empty for 204 and 304. */
export interface Answer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
}

export interface Call {
  query?: Record<string, string>;
  body?: Record<string, unknown>;
  headers?: Record<string, string>;
  /** What is sent piece by piece in place of a `body`; the headers say of what type it is. */
  stream?: ReadableStream<Uint8Array>;
  /** Ends the call. */
  signal?: AbortSignal;
}

/** Sends calls to the service, each within `timeoutMs`. */
export class Http {
  readonly #baseUrl: string;
  readonly #headers: Record<string, string>;

  constructor(
    baseUrl: string,
    apiKey: string,
    projectId: string,
    readonly timeoutMs: number,
  ) {
    this.#baseUrl = `${baseUrl.replace(/\/+$/, "")}/api/llm/`;
    this.#headers = { Authorization: `Bearer ${apiKey}`, "X-Project-Id": projectId, Accept: "application/json" };
  }

  /** Returns the answer. Throws PromptGatewayError for a refusal, UnavailableError for no usable answer. */
  async send(method: string, path: string, call: Call = {}): Promise<Answer> {
    const query = call.query === undefined ? "" : `?${new URLSearchParams(call.query)}`;
    const headers: Record<string, string> = { ...this.#headers, ...call.headers };
    const init: RequestInit = { method, headers, redirect: "error", signal: this.#signal(call.signal) };
    if (call.body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(call.body);
    }
    if (call.stream !== undefined) {
      // A body that is a stream is half of an exchange: the answer comes after it (https://fetch.spec.whatwg.org).
      Object.assign(init, { body: call.stream, duplex: "half" });
    }
    let response: Response;
    let text: string;
    try {
      response = await fetch(this.#baseUrl + path + query, init);
      text = await response.text();
    } catch (error) {
      throw new UnavailableError(`Prompt Gateway gave no answer: ${error instanceof Error ? error.message : error}`);
    }
    return decoded(response, text);
  }

  #signal(ending: AbortSignal | undefined): AbortSignal {
    const timeout = AbortSignal.timeout(this.timeoutMs);
    return ending === undefined ? timeout : AbortSignal.any([timeout, ending]);
  }
}

function decoded(response: Response, text: string): Answer {
  const { status, headers } = response;
  if (status === NO_CONTENT || status === NOT_MODIFIED) {
    return { status, headers, body: {} };
  }
  const body = parsed(text);
  if (response.ok && isObject(body)) {
    return { status, headers, body };
  }
  const error = isObject(body) && isObject(body["error"]) ? body["error"] : {};
  const message = String(error["message"] ?? `unexpected answer with status ${status}`);
  const code = String(error["code"] ?? "");
  if (status >= 400 && status < 500 && !TRY_LATER.includes(status) && code !== "") {
    throw new PromptGatewayError(message, status, code);
  }
  throw new UnavailableError(message, status, code);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
