// The list of a project's conversations, the most recently used first.

import { byId, fromTemplate, partOf } from "../../core/ui/elements.js";

const PAGE = 30;

export class Conversations {
  #rows = [];
  #current = null;
  // A token of the latest reload: a response that belongs to an earlier one is dropped.
  #reload = null;

  // The callbacks `open` and `remove` receive a row of the API.
  constructor(api, { open, remove }) {
    Object.assign(this, { api, open, remove });
  }

  // Loads the newest conversations or, with `older`, the next page of those that are shown.
  async load({ older = false } = {}) {
    const { project } = this.api;
    const reload = older ? this.#reload : (this.#reload = {});
    const { results, next } = await this.api.get("conversations", { limit: PAGE, offset: older ? this.#rows.length : 0 });
    if (reload !== this.#reload || project !== this.api.project) return;
    // A conversation that was used meanwhile has moved in the list and may be in two pages.
    const known = new Set(older ? this.#rows.map((row) => row.conversation_id) : []);
    this.#rows = [...(older ? this.#rows : []), ...results.filter((row) => !known.has(row.conversation_id))];
    byId("agent-older").hidden = next === null;
    this.#show();
  }

  clear() {
    this.#rows = [];
    byId("agent-older").hidden = true;
    byId("agent-conversations").replaceChildren();
    byId("agent-no-conversations").hidden = true;
  }

  set current(id) {
    this.#current = id;
    this.#show();
  }

  #show() {
    const { activeElement } = document;
    const focused = activeElement?.closest("#agent-conversations li")?.dataset.conversation;
    const part = activeElement?.dataset.part;
    byId("agent-conversations").replaceChildren(...this.#rows.map((row) => this.#row(row)));
    byId("agent-no-conversations").hidden = this.#rows.length > 0;
    if (focused) byId("agent-conversations").querySelector(`[data-conversation="${focused}"] [data-part="${part}"]`)?.focus();
  }

  #row(row) {
    const shown = fromTemplate("agent-conversation-row");
    const title = row.title || "Untitled";
    const open = partOf(shown, "open");
    shown.dataset.conversation = row.conversation_id;
    partOf(shown, "title").textContent = title;
    partOf(shown, "when").textContent = new Date(row.updated_at).toLocaleString([], { dateStyle: "short", timeStyle: "short" });
    if (row.conversation_id === this.#current) open.setAttribute("aria-current", "true");
    open.addEventListener("click", () => this.open(row));
    const remove = partOf(shown, "delete");
    remove.ariaLabel = `Delete ${title}`;
    remove.addEventListener("click", () => this.remove(row));
    return shown;
  }
}
