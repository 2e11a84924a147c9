// One turn of the agent: texts and calls of tools in the order in which they came.

import { element, fromTemplate, partOf } from "../../gateway/playground/elements.js";
import { Tool } from "./tool.js";

export function turn(who) {
  const made = fromTemplate("turn");
  partOf(made, "who").textContent = who;
  made.ariaLabel = who;
  return made;
}

export class Answer {
  #tools = new Map();
  #text = null;

  // `rendered` shows markdown, `opened` is called with the answer when arguments are to be fetched.
  constructor(rendered, opened) {
    Object.assign(this, { rendered, opened });
    this.element = turn("Agent");
    this.element.classList.add("agent");
  }

  // A part of a text. It is text as long as it grows.
  append(part) {
    if (!this.#text) {
      this.#text = element("div", { className: "text" });
      this.element.append(this.#text);
    }
    this.#text.append(part);
  }

  // The text is complete.
  closeText() {
    const place = this.#text;
    this.#text = null;
    if (place) this.rendered.show(place, place.textContent);
  }

  call(id, name, given = undefined) {
    this.closeText();
    const tool = new Tool(name, () => this.opened(this));
    if (given !== undefined) tool.given = given;
    this.#tools.set(id, tool);
    this.element.append(tool.element);
  }

  result(id, content, failed, name = "tool") {
    // Of a result whose call is further up than what was loaded, there is no call yet.
    if (!this.#tools.has(id)) this.call(id, name);
    this.#tools.get(id).end(content, failed);
  }

  // The arguments of calls, by their ids.
  give(calls) {
    for (const { id, function: called } of calls) {
      const tool = this.#tools.get(id);
      if (tool) tool.given = called.arguments;
    }
  }

  // Whatever is still open stays as it is.
  end() {
    this.closeText();
    for (const tool of this.#tools.values()) tool.breakOff();
  }

  note(text) {
    this.element.append(element("p", { className: "help" }, text));
  }

  // A failure, and what can be done about it.
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
