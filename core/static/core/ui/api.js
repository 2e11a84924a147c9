// A client of the management API with the rights of the user who is signed in to the admin.

export class ApiError extends Error {
  // `details` holds lists of messages by field; `status` is 0 when the answer is missing or incomplete.
  constructor(status, { code = "", message = `The service answered ${status}.`, details = {} } = {}) {
    super(message);
    Object.assign(this, { status, code, details });
  }
}

export class Api {
  // `root` is the prefix of all paths.
  constructor(token, root = "/api/llm/") {
    Object.assign(this, { token, root, project: "" });
  }

  // Returns a client that keeps the current project when this one changes to another.
  ofProject() {
    return Object.assign(new Api(this.token, this.root), { project: this.project });
  }

  // Returns the JSON of the answer. Throws ApiError.
  async get(path, query = {}, signal = undefined) {
    const response = await this.#ask(`${path}?${new URLSearchParams(query)}`, { signal });
    return response.json();
  }

  // Returns the JSON of the answer. Throws ApiError.
  async post(path, body) {
    return (await this.#send("POST", path, body)).json();
  }

  async delete(path) {
    await this.#send("DELETE", path);
  }

  // Yields the events of a stream as `{event, data}`. Throws ApiError.
  async *stream(path, body, signal) {
    yield* events((await this.#send("POST", path, body, signal)).body);
  }

  #send(method, path, body = undefined, signal = undefined) {
    const headers = { "Content-Type": "application/json", "X-CSRFToken": this.token };
    return this.#ask(path, { method, body: JSON.stringify(body), headers, signal });
  }

  async #ask(path, { headers = {}, ...options }) {
    const response = await fetch(`${this.root}${path}`, {
      ...options,
      headers: { ...headers, "X-Project-Id": this.project },
      credentials: "same-origin",
      cache: "no-store",
    }).catch(unreachable);
    if (response.ok) return response;
    throw new ApiError(response.status, await response.json().then((body) => body.error, () => undefined));
  }
}

// Yields the server-sent events of a body, whose bytes may be cut anywhere.
async function* events(body) {
  let rest = "";
  for await (const part of parts(body)) {
    const blocks = (rest + part).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const found = { event: "message", data: [] };
      for (const line of block.split("\n")) {
        const [, name, value] = /^(event|data): ?(.*)$/.exec(line) ?? [];
        if (name === "event") found.event = value;
        if (name === "data") found.data.push(value);
      }
      if (found.data.length) yield { event: found.event, data: found.data.join("\n") };
    }
  }
}

// Yields the texts of a body. Not every browser can iterate over the body itself.
async function* parts(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  try {
    const next = () => reader.read().catch(unreachable);
    for (let read = await next(); !read.done; read = await next()) yield read.value;
  } finally {
    reader.cancel().catch(() => {});
  }
}

function unreachable(error) {
  if (error.name === "AbortError") throw error;
  throw new ApiError(0, { code: "unreachable", message: "The connection to the service broke." });
}
