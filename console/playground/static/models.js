// The choice of models, which are searched by a part of their name or typed whole.

import { ApiError } from "../../core/ui/api.js";
import { byId, element, showText } from "../../core/ui/elements.js";

const SHOWN = 30;
const PAUSE_MS = 150;

export class Models {
  #chosen = [];
  #request = null;
  #timer = 0;

  constructor(api, maxModels, changed) {
    this.api = api;
    this.maxModels = maxModels;
    this.changed = changed;
    this.input = byId("model-search");
    this.options = byId("model-options");
    this.input.addEventListener("input", () => this.#searchSoon());
    this.input.addEventListener("focus", () => this.#searchSoon());
    this.input.addEventListener("blur", () => this.close());
    this.input.addEventListener("keydown", (event) => this.#press(event));
    // The event comes before the input loses its focus, which closes the list.
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
    this.#chosen = names.slice(0, this.maxModels);
    this.#show();
  }

  add(name) {
    if (this.#chosen.includes(name)) {
      showText(byId("models-problem"), `${name} is chosen already.`);
    } else if (this.#chosen.length >= this.maxModels) {
      showText(byId("models-problem"), `At most ${this.maxModels} models can be compared.`);
    } else {
      this.#chosen.push(name);
      this.#show();
      showText(byId("models-problem"), "");
      this.changed();
    }
    this.input.value = "";
    this.close();
  }

  close() {
    clearTimeout(this.#timer);
    this.#request?.abort();
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
    this.#request = new AbortController();
    try {
      const query = { search: this.input.value.slice(0, 200), limit: SHOWN };
      const { results } = await this.api.get("playground/models", query, this.#request.signal);
      this.#offer(results);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!(error instanceof ApiError)) throw error;
      showText(byId("models-problem"), error.message);
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
