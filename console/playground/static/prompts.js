// The choice of a version of a managed prompt, with a field for each of its variables.

import { ApiError } from "../../core/ui/api.js";
import { byId, element, option, showText } from "../../core/ui/elements.js";
import { FieldProblem } from "./problems.js";

const MAX_LISTED = 1000;

// The texts of a version: its system prompt, or each message below its role.
function textOf(version) {
  const messages = version?.messages ?? [];
  if (messages.length === 0) return version?.system_prompt ?? "";
  return messages.map(({ role, content }) => `[${role}]\n${content}`).join("\n\n");
}

export class Prompts {
  #configs = [];
  #versions = [];
  // Typed values stay for the next version that has variables of the same names.
  #values = {};

  constructor(api, changed) {
    this.api = api;
    this.changed = changed;
    this.config = byId("config");
    this.version = byId("version");
    this.config.addEventListener("change", () => this.#showingErrors(this.#pickConfig("")).then(changed));
    this.version.addEventListener("change", () => {
      this.#showVersion();
      changed();
    });
    byId("variables").addEventListener("input", () => {
      this.#values = { ...this.#values, ...this.#typed() };
      changed();
    });
  }

  // The state to store: ids and values.
  get state() {
    return { config: this.config.value, version: this.version.value, values: this.#values };
  }

  // Loads the configs of the project, and selects the one that was chosen before.
  async load(state = {}) {
    await this.#showingErrors(this.#load(state));
  }

  async #load({ config = "", version = "", values = {} }) {
    const { project } = this.api;
    this.#values = values;
    // Until the configs of the project have arrived, no config of another project can be picked.
    this.config.disabled = true;
    this.config.replaceChildren();
    await this.#pickConfig("");
    const { results } = await this.api.get("prompts/configs", { limit: MAX_LISTED });
    // Another project may have been selected meanwhile.
    if (project !== this.api.project) return;
    this.#configs = results;
    const options = results.map(({ id, name }) => option(id, name, id === config));
    this.config.replaceChildren(option("", "None, messages only"), ...options);
    await this.#pickConfig(version);
    this.config.disabled = false;
  }

  // Returns the fields of the request that concern the prompt. Throws FieldProblem for a value of a wrong type.
  get request() {
    const config = this.#configs.find(({ id }) => id === this.config.value);
    const version = this.#version;
    if (!config || !version) return {};
    const typed = this.#typed();
    const values = {};
    for (const { name, type } of version.variables) {
      if (typed[name] !== "") values[name] = valueOf(name, type, typed[name]);
    }
    return { prompt_config: config.name, prompt_version: version.version_number, prompt_variables: values };
  }

  get suggestedModel() {
    return this.#version?.model ?? "";
  }

  get #version() {
    return this.#versions.find(({ id }) => id === this.version.value);
  }

  async #showingErrors(work) {
    try {
      await work;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      showText(byId("prompt_config-problem"), error.message);
    }
  }

  async #pickConfig(version) {
    const id = this.config.value;
    this.#versions = [];
    if (id) {
      const { results } = await this.api.get(`prompts/configs/${id}/versions`, { limit: MAX_LISTED });
      if (id !== this.config.value) return;
      this.#versions = results;
    }
    const selected = this.#versions.find((row) => row.id === version) ?? this.#versions.find((row) => row.is_active);
    this.version.replaceChildren(...this.#versions.map((row) => {
      const active = row.is_active ? ", active" : "";
      return option(row.id, `${row.version_number}${active}`, row === selected);
    }));
    byId("version-field").hidden = !id;
    this.#showVersion();
  }

  #showVersion() {
    const version = this.#version;
    byId("prompt-text").hidden = !version;
    showText(byId("prompt-text").querySelector("pre"), textOf(version));
    showText(byId("prompt_config-problem"), "");
    const fields = (version?.variables ?? []).map((variable, index) => this.#field(variable, `variable-${index}`));
    byId("variables").replaceChildren(...fields);
    byId("variables").hidden = fields.length === 0;
    for (const name of ["temperature", "max_tokens"]) {
      const own = version?.[name];
      byId(name).placeholder = own === null || own === undefined ? "not sent" : `${own}, of the prompt`;
    }
  }

  #field({ name, type, required }, id) {
    const label = element("label", { htmlFor: id }, `${name} (${type}${required ? ", required" : ""})`);
    const input = CONTROLS[type]?.() ?? element("textarea", { rows: 2 });
    input.id = id;
    input.dataset.variable = name;
    input.value = this.#values[name] ?? "";
    return element("p", { className: "field" }, label, input);
  }

  #typed() {
    const fields = byId("variables").querySelectorAll("[data-variable]");
    return Object.fromEntries([...fields].map((field) => [field.dataset.variable, field.value]));
  }
}

const CONTROLS = {
  number: () => element("input", { inputMode: "decimal" }),
  boolean: () => element("select", {}, option("", "not given"), option("true", "true"), option("false", "false")),
};

function valueOf(name, type, text) {
  if (type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    const expected = type === "number" || type === "boolean" ? `a ${type}` : `JSON of type ${type}`;
    throw new FieldProblem(`prompt_variables.${name}`, `Has to be ${expected}.`);
  }
}
