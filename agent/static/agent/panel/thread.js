// The messages of one conversation.

import { ApiError } from "../../core/ui/api.js";
import { byId, element } from "../../core/ui/elements.js";
import { Answer, turn } from "./answer.js";

const PAGE = 100;
const NEAR_END_PIXELS = 80;

export class Thread {
  #id = null;
  #stored = [];
  #first = 0;

  // `retry` receives a text to send again; `reload` shows the stored conversation anew.
  constructor(api, renderer, { retry, reload }) {
    Object.assign(this, { api, renderer, retry, reload });
    this.place = byId("agent-messages");
    this.turns = byId("agent-turns");
  }

  get id() {
    return this.#id;
  }

  set id(id) {
    this.#id = id;
  }

  clear() {
    this.#id = null;
    this.#stored = [];
    this.#first = 0;
    this.turns.replaceChildren();
    byId("agent-earlier").hidden = true;
  }

  // Returns the latest messages. The caller checks whether the thread still shows this conversation.
  async load(id) {
    // The project is fixed here, because the user may choose another one between the two calls.
    const api = this.api.ofProject();
    const { count } = await this.#page(id, 0, 1, api);
    const first = Math.max(0, count - PAGE);
    const { results } = await this.#page(id, first, PAGE, api);
    return { id, first, results };
  }

  show({ id, first, results }) {
    this.#id = id;
    this.#stored = results;
    this.#first = first;
    this.#draw();
    this.place.scrollTop = this.place.scrollHeight;
  }

  async loadEarlier() {
    const id = this.#id;
    const last = this.#first;
    const first = Math.max(0, last - PAGE);
    const { results } = await this.#page(id, first, last - first);
    // A second click may have loaded the same messages meanwhile.
    if (id !== this.#id || last !== this.#first) return;
    this.#first = first;
    this.#stored = [...results, ...this.#stored];
    const below = this.place.scrollHeight - this.place.scrollTop;
    // Messages sent or received since the conversation was opened are only on the page.
    const live = [...this.turns.children].filter((child) => child.dataset.live);
    this.#draw();
    this.turns.append(...live);
    this.place.scrollTop = this.place.scrollHeight - below;
  }

  // Adds the user's message, which is not stored yet.
  addQuestion(text, origin) {
    const made = this.#question(text, origin?.page);
    made.dataset.live = "true";
    this.turns.append(made);
    this.place.scrollTop = this.place.scrollHeight;
    return made;
  }

  addAnswer() {
    const made = new Answer(this.renderer, (answer) => this.#fetchArguments(answer));
    this.turns.append(made.element);
    return made;
  }

  // Runs a step that adds to the messages, and scrolls to the end again if the reader was there.
  follow(step) {
    const { scrollHeight, scrollTop, clientHeight } = this.place;
    const follows = scrollHeight - scrollTop - clientHeight < NEAR_END_PIXELS;
    step();
    if (follows) this.place.scrollTop = this.place.scrollHeight;
  }

  #page(id, offset, limit, api = this.api) {
    return api.get(`conversations/${id}/messages`, { offset, limit });
  }

  #draw() {
    this.turns.replaceChildren();
    byId("agent-earlier").hidden = this.#first === 0;
    let answer = null;
    let question = "";
    for (const message of this.#stored) {
      if (message.role === "user") {
        answer?.end();
        answer = null;
        question = message.content;
        this.turns.append(this.#question(message.content, message.page_context?.page));
      } else {
        answer ??= this.addAnswer();
        if (message.role === "tool") answer.result(message.tool_call_id, message.content, message.is_error, message.tool_name);
        else this.#showAnswer(answer, message, question);
      }
    }
    answer?.end();
    this.#noteMissingAnswer(answer);
  }

  #showAnswer(answer, message, question) {
    answer.append(message.content);
    answer.closeText();
    for (const { id, function: called } of message.tool_calls) answer.call(id, called.name, called.arguments);
    if (message.state === "cancelled") answer.note("Stopped.");
    if (message.state === "failed") answer.fail(message.error, "Retry", () => this.retry(question));
  }

  #noteMissingAnswer(answer) {
    const last = this.#stored.at(-1);
    if (!last || (last.role === "assistant" && last.tool_calls.length === 0)) return;
    (answer ?? this.addAnswer()).fail("The answer is still being made, or was broken off.", "Load again", this.reload);
  }

  #question(text, page) {
    const made = turn("You");
    made.append(element("div", { className: "text" }, text));
    if (page) made.append(element("p", { className: "help" }, `Of the page ${page}`));
    return made;
  }

  // Fetches the arguments of the answer's calls from the stored messages, because a stream holds their names alone.
  async #fetchArguments(answer) {
    if (!this.#id) return;
    try {
      const { results } = await this.load(this.#id);
      for (const { tool_calls: calls } of results) answer.setArguments(calls);
    } catch (error) {
      // The call still shows that its arguments are not loaded, and the next opening tries again.
      if (!(error instanceof ApiError)) throw error;
    }
  }
}
