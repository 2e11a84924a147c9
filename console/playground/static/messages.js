// The editor of messages, which adds, removes and reorders them.

import { byId, fromTemplate, partOf } from "../../core/ui/elements.js";

export class Messages {
  constructor(changed) {
    this.list = byId("messages");
    this.changed = changed;
    byId("add-message").addEventListener("click", () => {
      const last = this.list.lastElementChild;
      const follows = last && partOf(last, "role").value === "user" ? "assistant" : "user";
      partOf(this.#add({ role: follows, content: "" }), "content").focus();
      changed();
    });
  }

  get value() {
    return [...this.list.children].map((row) => ({
      role: partOf(row, "role").value,
      content: partOf(row, "content").value,
    }));
  }

  set value(messages) {
    this.list.replaceChildren();
    for (const message of messages) this.#add(message);
  }

  #add({ role, content }) {
    const row = fromTemplate("message-row");
    partOf(row, "role").value = role;
    partOf(row, "content").value = content;
    partOf(row, "up").addEventListener("click", () => this.#move(row, row.previousElementSibling, "up"));
    partOf(row, "down").addEventListener("click", () => this.#move(row.nextElementSibling, row, "down"));
    partOf(row, "remove").addEventListener("click", () => {
      const next = row.nextElementSibling ?? row.previousElementSibling;
      row.remove();
      this.#number();
      (next ? partOf(next, "content") : byId("add-message")).focus();
      this.changed();
    });
    this.list.append(row);
    this.#number();
    return row;
  }

  // Moves the lower of two neighbours before the upper one; the pressed button keeps the focus if it is still enabled.
  #move(lower, upper, part) {
    const moved = part === "up" ? lower : upper;
    upper.before(lower);
    this.#number();
    const pressed = partOf(moved, part);
    (pressed.disabled ? partOf(moved, part === "up" ? "down" : "up") : pressed).focus();
    this.changed();
  }

  #number() {
    const rows = [...this.list.children];
    rows.forEach((row, index) => {
      const name = `message ${index + 1}`;
      partOf(row, "role").ariaLabel = `Role of ${name}`;
      partOf(row, "content").ariaLabel = `Text of ${name}`;
      partOf(row, "up").ariaLabel = `Move ${name} up`;
      partOf(row, "down").ariaLabel = `Move ${name} down`;
      partOf(row, "remove").ariaLabel = `Remove ${name}`;
      partOf(row, "up").disabled = index === 0;
      partOf(row, "down").disabled = index === rows.length - 1;
    });
  }
}
