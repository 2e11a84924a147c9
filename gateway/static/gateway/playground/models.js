// The models to ask: found by part of their name, or written out.

import { ApiError } from "./api.js";
import { byId, element, tell } from "./elements.js";

const SHOWN = 30;
const PAUSE_MS = 150;

export class Models {
  #chosen = [];
  #asked = null;
  #timer = 0;

  constructor(api, most, changed) {
    this.api = api;
    this.most = most;
    this.changed = changed;
    this.input = byId("model-search");
    this.options = byId("model-options");
    this.input.addEventListener("input", () => this.#searchSoon());
    this.input.addEventListener("focus", () => this.#searchSoon());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (event) => this.#press(event));
    // Before the input loses its focus, and the list with it.
    this.options.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const picked = event.target.closest("[role=option]");
      if (picked) this.add(picked.dataset.model);
    });
  }

  get value() {
    return [...this.#chosen];
  }

  set value(names) {
    this.#chosen = names.slice(0, this.most);
    this.#show();
  }

  add(name) {
    if (this.#chosen.includes(name)) {
      tell(byId("models-problem"), `${name} is chosen already.`);
    } else if (this.#chosen.length >= this.most) {
      tell(byId("models-problem"), `At most ${this.most} models can be compared.`);
    } else {
      this.#chosen.push(name);
      this.#show();
      tell(byId("models-problem"), "");
      this.changed();
    }
    this.input.value = "";
    this.close();
  }

  close() {
    clearTimeout(this.#timer);
    this.#asked?.abort();
    this.options.hidden = true;
    this.input.ariaExpanded = "false";
    this.input.removeAttribute("aria-activedescendant");
  }

  #show() {
    byId("models").replaceChildren(...this.#chosen.map((name) => {
      const remove = element("button", { type: "button", textContent: "×", ariaLabel: `Remove ${name}` });
      remove.addEventListener("click", () => {
        this.#chosen = this.#chosen.filter((other) => other !== name);
        this.#show();
        this.input.focus();
        this.changed();
      });
      return element("li", {}, element("span", {}, name), remove);
    }));
  }

  #searchSoon() {
    this.close();
    this.#timer = setTimeout(() => this.#search(), PAUSE_MS);
  }

  async #search() {
    this.#asked = new AbortController();
    try {
      const query = { search: this.input.value.slice(0, 200), limit: SHOWN };
      const { results } = await this.api.get("playground/models", query, this.#asked.signal);
      this.#offer(results);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof ApiError)) throw error;
      tell(byId("models-problem"), error.message);
    }
  }

  #offer(models) {
    this.options.replaceChildren(...models.map((model, index) => {
      const shown = element("li", { id: `model-option-${index}`, role: "option", ariaSelected: "false" }, model.model);
      shown.dataset.model = model.model;
      shown.append(element("small", {}, price(model)));
      return shown;
    }));
    this.options.hidden = models.length === 0;
    this.input.ariaExpanded = String(models.length > 0);
  }

  #press(event) {
    const options = [...this.options.children];
    const at = options.findIndex((shown) => shown.ariaSelected === "true");
    if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      const name = options[at]?.dataset.model ?? this.input.value.trim();
      if (name) this.add(name);
    } else if (event.key === "Escape") {
      this.close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (this.options.hidden) this.#searchSoon();
      else this.#select(options, event.key === "ArrowDown" ? at + 1 : Math.max(at, 0) - 1);
    }
  }

  #select(options, index) {
    const selected = options.at(index % options.length);
    for (const shown of options) shown.ariaSelected = String(shown === selected);
    this.input.setAttribute("aria-activedescendant", selected.id);
    selected.scrollIntoView({ block: "nearest" });
  }
}

function price({ preferred, input_cost_per_1m: paid, output_cost_per_1m: earned }) {
  const known = paid === null || earned === null ? "" : `$${paid} / $${earned} per 1M`;
  return [preferred ? "preferred" : "", known].filter(Boolean).join(", ");
}
