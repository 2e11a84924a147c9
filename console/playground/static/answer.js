// One model's answer: a column that fills while the answer arrives.

import { ApiError } from "../../core/ui/api.js";
import { byId, element, fromTemplate, partOf, showText } from "../../core/ui/elements.js";

export class Answer {
  // `result` is the result object of the API, null before it arrives; `refused` is the ApiError of a refused request.
  result = null;
  refused = null;
  #abort = new AbortController();
  #firstAt = 0;

  // `requestAddress` returns the address of a request's page, or an empty text for somebody who may not open it.
  constructor(model, requestAddress) {
    Object.assign(this, { model, requestAddress });
    this.column = fromTemplate("answer-column");
    this.part = (name) => partOf(this.column, name);
    this.part("model").textContent = model;
    this.part("text").ariaLabel = `Answer of ${model}`;
    this.column.ariaLabel = model;
    const stop = this.part("stop");
    stop.ariaLabel = `Stop ${model}`;
    stop.addEventListener("click", () => this.stop());
    byId("results").append(this.column);
  }

  get succeeded() {
    return this.result !== null && this.result.error === null;
  }

  stop() {
    this.#abort.abort();
  }

  async run(api, body) {
    const startedAt = performance.now();
    this.#showState("waiting");
    try {
      for await (const event of api.stream("playground", { ...body, model: this.model, stream: true }, this.#abort.signal)) {
        this.#take(event, startedAt);
      }
      this.#end();
    } catch (error) {
      this.#fail(error);
    }
    this.part("stop").hidden = true;
    return this;
  }

  // Shows the marks that the answer has earned: "fastest", "cheapest".
  mark(names) {
    this.part("marks").replaceChildren(...names.flatMap((name) => [element("span", { className: "badge good" }, name), " "]));
  }

  #take({ event, data }, startedAt) {
    if (event === "result") {
      this.result = JSON.parse(data);
      return;
    }
    if (data === "[DONE]") {
      this.#showState("finishing");
      return;
    }
    const { delta } = JSON.parse(data).choices?.[0] ?? {};
    const reasoning = delta?.reasoning_content ?? delta?.reasoning;
    if (!delta?.content && !reasoning) return;
    if (!this.#firstAt) {
      this.#firstAt = performance.now();
      this.#showState("answering");
      this.#figures({ "First token": milliseconds(this.#firstAt - startedAt) });
    }
    // The content is appended as text, because a model may write anything.
    if (delta.content) this.part("text").append(delta.content);
    if (reasoning) {
      this.part("reasoning").hidden = false;
      this.part("reasoning").querySelector("pre").append(reasoning);
    }
  }

  #end() {
    const result = this.result;
    if (!result) {
      this.#tellFailure("The connection ended before the answer did.");
      return;
    }
    const { content, tool_calls: calls } = result.response ?? {};
    if (typeof content === "string") this.part("text").textContent = content;
    showText(this.part("calls"), calls ? JSON.stringify(calls, null, 2) : "");
    showText(this.part("warning"), result.warning ?? "");
    this.#showState(result.error ? "failed" : "done");
    showText(this.part("problem"), result.error ? `${result.error.code}: ${result.error.message}` : "");
    this.#figures({ ...figuresOf(result), Request: this.#request(result.request_id) });
    this.#judged(result);
  }

  #judged({ scores, evaluation }) {
    const figures = this.part("figures");
    for (const [name, score] of Object.entries(scores ?? {})) {
      figures.append(element("dt", {}, name), element("dd", { title: evaluation?.reasons?.[name] ?? "" }, String(score)));
    }
    if (evaluation?.error) figures.append(element("dt", {}, "Judge"), element("dd", {}, evaluation.error.message));
  }

  #request(id) {
    const href = id && this.requestAddress(id);
    return href ? element("a", { href }, id) : id;
  }

  #fail(error) {
    if (error.name === "AbortError") {
      this.#showState("stopped");
      return;
    }
    if (!(error instanceof ApiError)) throw error;
    this.refused = error.status ? error : null;
    this.#tellFailure(`${error.code}: ${error.message}`);
  }

  #tellFailure(text) {
    this.#showState("failed");
    showText(this.part("problem"), text);
  }

  #showState(state) {
    this.column.dataset.state = state;
    this.part("state").textContent = state;
  }

  #figures(figures) {
    const rows = Object.entries(figures).filter(([, value]) => value !== null);
    this.part("figures").replaceChildren(
      ...rows.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]),
    );
  }
}

function figuresOf(result) {
  const { usage, latency_ms: latency, ttft_ms: first, cost_usd: cost } = result;
  return {
    Latency: milliseconds(latency),
    "First token": first === null ? null : milliseconds(first),
    Tokens: usage && `${usage.prompt_tokens} + ${usage.completion_tokens}${usage.estimated ? ", estimated" : ""}`,
    Cost: cost === null ? (usage && "unknown") : `$${dollars(cost)}`,
    Finish: result.finish_reason,
    Served: result.provider && `${result.provider}, ${result.model_used}${result.fallback_used ? ", fallback" : ""}`,
    Prompt: result.prompt_version === null ? null : `version ${result.prompt_version}`,
  };
}

const milliseconds = (value) => `${Math.round(value)} ms`;

const dollars = (value) => value.toLocaleString("en", { maximumFractionDigits: 10, useGrouping: false });
