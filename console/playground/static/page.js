// The playground's page: reads the form, requests a stream from each model, and compares the answers.

import { Api, ApiError } from "../../core/ui/api.js";
import { Answer } from "./answer.js";
import { byId, element, showText } from "../../core/ui/elements.js";
import { BrowserStorage } from "../../core/ui/storage.js";
import { Messages } from "./messages.js";
import { Models } from "./models.js";
import { clearProblems, FieldProblem, showProblem, showProblems } from "./problems.js";
import { Prompts } from "./prompts.js";
import { storedRequest } from "./stored.js";

const FIRST = [{ role: "user", content: "" }];

class Page {
  #answers = [];
  #running = false;
  #suggested = "";

  constructor(form) {
    this.form = form;
    this.api = new Api(form.elements.csrfmiddlewaretoken.value);
    this.storage = new BrowserStorage(`playground.${form.dataset.user}`);
    const changed = () => this.#save();
    this.messages = new Messages(changed);
    this.models = new Models(this.api, Number(form.dataset.maxModels), changed);
    this.prompts = new Prompts(this.api, () => {
      this.#suggest();
      changed();
    });
    this.parameters = [...byId("parameters").querySelectorAll("[data-kind]")];
    this.#listen(changed);
  }

  async start() {
    const query = new URLSearchParams(location.search);
    const [requestId, model] = [query.get("request"), query.get("model")];
    const state = requestId ? await this.#stored(requestId) : this.storage.read();
    await this.#show(model ? { ...state, models: [model] } : state);
    this.form.dataset.ready = "true";
  }

  // Returns the state of a stored request; of an empty form, with a message, when it cannot be read.
  async #stored(requestId) {
    this.api.project = byId("project").value;
    const status = byId("status");
    try {
      const { state, leftOut } = await storedRequest(this.api, requestId);
      status.textContent = `Request ${requestId} is filled in${leftOut ? `, without ${leftOut} parts that are no texts` : ""}.`;
      return state;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      status.textContent = `Request ${requestId} cannot be filled in: ${error.message}`;
      return {};
    }
  }

  #listen(changed) {
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#run();
    });
    this.form.addEventListener("input", changed);
    this.form.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    byId("keep").addEventListener("change", () => this.#showSession());
    byId("stop-all").addEventListener("click", () => this.#answers.forEach((answer) => answer.stop()));
    byId("reset").addEventListener("click", () => this.#show({}).then(changed));
  }

  get #state() {
    return {
      project: byId("project").value,
      prompt: this.prompts.state,
      messages: this.messages.value,
      models: this.models.value,
      parameters: Object.fromEntries(this.parameters.map((field) => [field.name, field.value])),
      evaluate: byId("auto_evaluate").checked,
      keep: byId("keep").checked,
      session: byId("session_id").value,
    };
  }

  async #show(state) {
    clearProblems();
    this.messages.value = state.messages?.length ? state.messages : FIRST;
    this.models.value = state.models ?? [];
    for (const field of this.parameters) field.value = state.parameters?.[field.name] ?? "";
    byId("auto_evaluate").checked = state.evaluate ?? false;
    byId("keep").checked = state.keep ?? false;
    byId("session_id").value = state.session ?? "";
    this.#showSession();
    // Prompts of another project mean nothing in this one.
    await this.#loadPrompts(state.project === byId("project").value ? state.prompt : {});
  }

  async #loadPrompts(state) {
    this.api.project = byId("project").value;
    await this.prompts.load(state);
  }

  #showSession() {
    byId("session-field").hidden = !byId("keep").checked;
  }

  // Selects the model that the prompt version names, unless the user has chosen others.
  #suggest() {
    const chosen = this.models.value;
    const model = this.prompts.suggestedModel;
    if (!model || chosen.some((name) => name !== this.#suggested)) return;
    this.#suggested = model;
    this.models.value = [model];
  }

  #save() {
    // Until the form shows all of the stored state, saving would lose a part of it.
    if (this.form.dataset.ready) this.storage.write(this.#state);
  }

  // Returns the request without its model; null, with the problem shown, when a field cannot be sent.
  #request(session) {
    const body = { messages: this.messages.value, auto_evaluate: byId("auto_evaluate").checked };
    for (const field of this.parameters.filter(({ value }) => value.trim() !== "")) {
      const value = field.dataset.kind === "number" ? Number(field.value) : field.value;
      if (field.dataset.kind === "number" && !Number.isFinite(value)) {
        showProblem(field.name, "Has to be a number.");
        return null;
      }
      body[field.name] = value;
    }
    if (session) body.session_id = session;
    try {
      return { ...body, ...this.prompts.request };
    } catch (error) {
      if (!(error instanceof FieldProblem)) throw error;
      showProblem(error.field, error.message);
      return null;
    }
  }

  async #run() {
    if (this.#running) return;
    clearProblems();
    const models = this.models.value;
    const session = byId("keep").checked ? byId("session_id").value.trim() || newSession() : "";
    const body = this.#request(session);
    if (models.length === 0) showText(byId("models-problem"), "Choose at least one model.");
    if (!body || models.length === 0) return;
    this.#setRunning(true);
    byId("results").replaceChildren();
    this.#answers = models.map((model) => new Answer(model, (id) => this.#requestAddress(id)));
    byId("status").textContent = models.length === 1 ? "Running" : `Running ${models.length} models`;
    await Promise.all(this.#answers.map((answer) => answer.run(this.api, body)));
    this.#setRunning(false);
    this.#conclude(session);
  }

  #setRunning(running) {
    this.#running = running;
    byId("run").disabled = running;
    byId("stop-all").disabled = !running;
  }

  #conclude(session) {
    mark(this.#answers);
    for (const { refused } of this.#answers) if (refused) showProblems(refused.details);
    const done = this.#answers.filter((answer) => answer.succeeded).length;
    const status = byId("status");
    status.textContent = `${done} of ${this.#answers.length} answered`;
    // Requests that were refused by validation belong to no session.
    if (!session || this.#answers.every(({ refused }) => refused)) return;
    status.append(", kept as session ", this.#sessionLink(session));
  }

  #requestAddress(id) {
    const { requests } = this.form.dataset;
    return requests ? `${requests}${this.api.project}/${id}/` : "";
  }

  #sessionLink(session) {
    const { requests } = this.form.dataset;
    if (!requests) return session;
    const query = new URLSearchParams({ project: this.api.project, session });
    return element("a", { href: `${requests}?${query}` }, session);
  }
}

// Marks the best answers; of equal ones the first, as in the comparison of the API.
function mark(answers) {
  const good = answers.filter((answer) => answer.succeeded);
  if (good.length < 2) return;
  const least = (figure, among) => among.reduce((best, one) => (figure(one) < figure(best) ? one : best), among[0]);
  const fastest = least((answer) => answer.result.latency_ms, good);
  const cheapest = least((answer) => answer.result.cost_usd, good.filter((answer) => answer.result.cost_usd !== null));
  for (const answer of good) {
    answer.mark([...(answer === fastest ? ["fastest"] : []), ...(answer === cheapest ? ["cheapest"] : [])]);
  }
}

function newSession() {
  const at = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  const random = [...crypto.getRandomValues(new Uint8Array(3))].map((byte) => byte.toString(16).padStart(2, "0"));
  return `playground-${at}-${random.join("")}`;
}

const form = byId("playground");
if (form) new Page(form).start();
