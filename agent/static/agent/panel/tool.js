// One tool call: a line with the tool's name and the call's state, which opens to show arguments and result.

import { fromTemplate, partOf } from "../../core/ui/elements.js";

const MAX_CHARACTERS = 20_000;

export class Tool {
  // `fetchArguments` is called when a reader opens a call whose arguments are not known.
  constructor(name, fetchArguments) {
    this.element = fromTemplate("agent-tool-call");
    this.part = (part) => partOf(this.element, part);
    this.part("name").textContent = name;
    this.hasArguments = false;
    this.setState("running");
    this.part("result").textContent = "Not there yet.";
    this.part("arguments").textContent = "Not loaded yet.";
    this.element.addEventListener("toggle", () => {
      if (this.element.open && !this.hasArguments) fetchArguments();
    });
  }

  set arguments(text) {
    this.hasArguments = true;
    this.part("arguments").textContent = pretty(text);
  }

  end(content, failed) {
    this.setState(failed ? "failed" : "done");
    this.part("result").textContent = pretty(content);
  }

  // Ends a running call that will get no result.
  breakOff() {
    if (this.element.dataset.state !== "running") return;
    this.setState("broken off");
    this.part("result").textContent = "None.";
  }

  setState(state) {
    this.element.dataset.state = state;
    this.part("state").textContent = state;
  }
}

// Returns whether a tool's result reports a failure.
export function isFailure(content) {
  const { error } = parsed(content) ?? {};
  return typeof error === "object" && error !== null;
}

function pretty(text) {
  const value = parsed(text);
  const lines = value === undefined ? text : JSON.stringify(value, null, 2);
  const more = lines.length - MAX_CHARACTERS;
  return more > 0 ? `${lines.slice(0, MAX_CHARACTERS)}\n… and ${more.toLocaleString()} characters more` : lines;
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
