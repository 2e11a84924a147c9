// The messages of one conversation.

import { ApiError } from "../../gateway/playground/api.js";
import { byId, element } from "../../gateway/playground/elements.js";
import { Answer, turn } from "./answer.js";

const PAGE = 100;
const NEAR = 80;

export class Thread {
  #id = null;
  #stored = [];
  #first = 0;

  // `retry` gets the text that is to be sent again, `reload` shows the conversation as it is stored by then.
  constructor(api, rendered, { retry, reload }) {
    Object.assign(this, { api, rendered, retry, reload });
    this.place = byId("messages");
    this.turns = byId("turns");
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
    byId("earlier").hidden = true;
  }

  // The latest messages. Whether the thread is still of this conversation then is for the caller to see.
  async load(id) {
    // Another project may be chosen between the two calls.
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
    // Asked for twice, they come once.
    if (id !== this.#id || last !== this.#first) return;
    this.#first = first;
    this.#stored = [...results, ...this.#stored];
    const below = this.place.scrollHeight - this.place.scrollTop;
    // What was said since the conversation was opened is only on the page.
    const since = [...this.turns.children].filter((child) => child.dataset.live);
    this.#draw();
    this.turns.append(...since);
    this.place.scrollTop = this.place.scrollHeight - below;
  }

  // What the user says, not stored yet.
  say(text, origin) {
    const made = this.#said(text, origin?.page);
    made.dataset.live = "true";
    this.turns.append(made);
    this.place.scrollTop = this.place.scrollHeight;
    return made;
  }

  answer() {
    const made = new Answer(this.rendered, (answer) => this.#fetchArguments(answer));
    this.turns.append(made.element);
    return made;
  }

  // Runs a step that adds something, and stays at the end for those who read there.
  follow(step) {
    const { scrollHeight, scrollTop, clientHeight } = this.place;
    const follows = scrollHeight - scrollTop - clientHeight < NEAR;
    step();
    if (follows) this.place.scrollTop = this.place.scrollHeight;
  }

  #page(id, offset, limit, api = this.api) {
    return api.get(`conversations/${id}/messages`, { offset, limit });
  }

  #draw() {
    this.turns.replaceChildren();
    byId("earlier").hidden = this.#first === 0;
    let answer = null;
    let question = "";
    for (const message of this.#stored) {
      if (message.role === "user") {
        answer?.end();
        answer = null;
        question = message.content;
        this.turns.append(this.#said(message.content, message.page_context?.page));
      } else {
        answer ??= this.answer();
        if (message.role === "tool") answer.result(message.tool_call_id, message.content, message.is_error, message.tool_name);
        else this.#answered(answer, message, question);
      }
    }
    answer?.end();
    this.#tellMissing(answer);
  }

  #answered(answer, message, question) {
    answer.append(message.content);
    answer.closeText();
    for (const { id, function: called } of message.tool_calls) answer.call(id, called.name, called.arguments);
    if (message.state === "cancelled") answer.note("Stopped.");
    if (message.state === "failed") answer.fail(message.error, "Retry", () => this.retry(question));
  }

  #tellMissing(answer) {
    const last = this.#stored.at(-1);
    if (!last || (last.role === "assistant" && last.tool_calls.length === 0)) return;
    (answer ?? this.answer()).fail("The answer is still being made, or was broken off.", "Load again", this.reload);
  }

  #said(text, page) {
    const made = turn("You");
    made.append(element("div", { className: "text" }, text));
    if (page) made.append(element("p", { className: "help" }, `Of the page ${page}`));
    return made;
  }

  // A stream tells a call by its name alone; what it was given is in what is stored.
  async #fetchArguments(answer) {
    if (!this.#id) return;
    try {
      const { results } = await this.load(this.#id);
      for (const { tool_calls: calls } of results) answer.give(calls);
    } catch (error) {
      // The call says that it does not know them, and looks again when it is opened again.
      if (!(error instanceof ApiError)) throw error;
    }
  }
}
