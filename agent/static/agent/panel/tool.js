// One call of a tool: closed it says which and how it went, opened what it was given and what it gave.

import { fromTemplate, partOf } from "../../gateway/playground/elements.js";

const SHOWN = 20_000;

export class Tool {
  // `opened` is called when somebody looks at a call whose arguments are not known.
  constructor(name, opened) {
    this.element = fromTemplate("tool-call");
    this.part = (part) => partOf(this.element, part);
    this.part("name").textContent = name;
    this.known = false;
    this.say("running");
    this.part("result").textContent = "Not there yet.";
    this.part("arguments").textContent = "Not loaded yet.";
    this.element.addEventListener("toggle", () => {
      if (this.element.open && !this.known) opened();
    });
  }

  set given(text) {
    this.known = true;
    this.part("arguments").textContent = pretty(text);
  }

  end(content, failed) {
    this.say(failed ? "failed" : "done");
    this.part("result").textContent = pretty(content);
  }

  // Nothing more comes of it.
  breakOff() {
    if (this.element.dataset.state !== "running") return;
    this.say("broken off");
    this.part("result").textContent = "None.";
  }

  say(state) {
    this.element.dataset.state = state;
    this.part("state").textContent = state;
  }
}

// Of a tool's result: whether it tells of a failure.
export function tellsFailure(content) {
  const { error } = parsed(content) ?? {};
  return typeof error === "object" && error !== null;
}

function pretty(text) {
  const value = parsed(text);
  const lines = value === undefined ? text : JSON.stringify(value, null, 2);
  const more = lines.length - SHOWN;
  return more > 0 ? `${lines.slice(0, SHOWN)}\n… and ${more.toLocaleString()} characters more` : lines;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
