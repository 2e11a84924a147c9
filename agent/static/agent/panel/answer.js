// One turn of the agent: its texts and tool calls in order of arrival.

import { element, fromTemplate, partOf } from "../../core/ui/elements.js";
import { Tool } from "./tool.js";

export function turn(who) {
  const made = fromTemplate("agent-turn");
  partOf(made, "who").textContent = who;
  made.ariaLabel = who;
  return made;
}

export class Answer {
  #tools = new Map();
  #text = null;

  // `renderer` shows Markdown. `fetchArguments` gets this answer when a reader opens a call without arguments.
  constructor(renderer, fetchArguments) {
    Object.assign(this, { renderer, fetchArguments });
    this.element = turn("Agent");
    this.element.classList.add("agent");
  }

  // Appends a part of a text, which stays plain text until `closeText`.
  append(part) {
    if (!this.#text) {
      this.#text = element("div", { className: "text" });
      this.element.append(this.#text);
    }
    this.#text.append(part);
  }

  // Renders the text, which is complete.
  closeText() {
    const place = this.#text;
    this.#text = null;
    if (place) this.renderer.show(place, place.textContent);
  }

  call(id, name, args = undefined) {
    this.closeText();
    const tool = new Tool(name, () => this.fetchArguments(this));
    if (args !== undefined) tool.arguments = args;
    this.#tools.set(id, tool);
    this.element.append(tool.element);
  }

  result(id, content, failed, name = "tool") {
    // The call is missing when it belongs to earlier messages, which have not been loaded.
    if (!this.#tools.has(id)) this.call(id, name);
    this.#tools.get(id).end(content, failed);
  }

  // Sets the arguments of the calls, matched by their ids.
  setArguments(calls) {
    for (const { id, function: called } of calls) {
      const tool = this.#tools.get(id);
      if (tool) tool.arguments = called.arguments;
    }
  }

  // Renders the last text, and marks tool calls without a result as broken off.
  end() {
    this.closeText();
    for (const tool of this.#tools.values()) tool.breakOff();
  }

  note(text) {
    this.element.append(element("p", { className: "help" }, text));
  }

  // Shows a failure, and a button that reads `label` and calls `act`.
  fail(text, label, act) {
    const again = element("button", { type: "button" }, label);
    const problem = element("p", { className: "problem" }, text, " ", again);
    problem.setAttribute("role", "alert");
    again.addEventListener("click", () => {
      again.remove();
      act();
    });
    this.element.append(problem);
  }
}
