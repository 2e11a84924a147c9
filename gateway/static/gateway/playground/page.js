// The playground's page: collects the form, asks each model for a stream of its own, and compares what came.

import { Api } from "./api.js";
import { Answer } from "./answer.js";
import { byId, element, tell } from "./elements.js";
import { Kept } from "./kept.js";
import { Messages } from "./messages.js";
import { Models } from "./models.js";
import { clearProblems, FieldProblem, tellProblem, tellProblems } from "./problems.js";
import { Prompts } from "./prompts.js";

const FIRST = [{ role: "user", content: "" }];

class Page {
  #answers = [];
  #running = false;
  #suggested = "";

  constructor(form) {
    this.form = form;
    this.api = new Api(form.elements.csrfmiddlewaretoken.value);
    this.kept = new Kept(`playground.${form.dataset.user}`);
    const changed = () => this.#keep();
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
    await this.#show(this.kept.read());
    this.form.dataset.ready = "true";
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
    byId("project").addEventListener("change", () => this.#loadPrompts({}).then(changed));
    byId("keep").addEventListener("change", () => this.#showSession());
    byId("stop-all").addEventListener("click", () => this.#answers.forEach((answer) => answer.stop()));
    byId("reset").addEventListener("click", () => this.#show({ project: byId("project").value }).then(changed));
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
    const projects = [...byId("project").options].map(({ value }) => value);
    if (projects.includes(state.project)) byId("project").value = state.project;
    this.messages.value = state.messages?.length ? state.messages : FIRST;
    this.models.value = state.models ?? [];
    for (const field of this.parameters) field.value = state.parameters?.[field.name] ?? "";
    byId("auto_evaluate").checked = state.evaluate ?? false;
    byId("keep").checked = state.keep ?? false;
    byId("session_id").value = state.session ?? "";
    this.#showSession();
    await this.#loadPrompts(state.prompt);
  }

  async #loadPrompts(state) {
    this.api.project = byId("project").value;
    await this.prompts.load(state);
  }

  #showSession() {
    byId("session-field").hidden = !byId("keep").checked;
  }

  // A version that names a model is for that one, until others are chosen.
  #suggest() {
    const chosen = this.models.value;
    const model = this.prompts.suggestedModel;
    if (!model || chosen.some((name) => name !== this.#suggested)) return;
    this.#suggested = model;
    this.models.value = [model];
  }

  #keep() {
    // Before all of it is shown, the form holds less than what is kept.
    if (this.form.dataset.ready) this.kept.write(this.#state);
  }

  // The request but for its model, or null when a field cannot be sent: then it is told.
  #request(session) {
    const body = { messages: this.messages.value, auto_evaluate: byId("auto_evaluate").checked };
    for (const field of this.parameters.filter(({ value }) => value.trim() !== "")) {
      const value = field.dataset.kind === "number" ? Number(field.value) : field.value;
      if (field.dataset.kind === "number" && !Number.isFinite(value)) {
        tellProblem(field.name, "Has to be a number.");
        return null;
      }
      body[field.name] = value;
    }
    if (session) body.session_id = session;
    try {
      return { ...body, ...this.prompts.request };
    } catch (error) {
      if (!(error instanceof FieldProblem)) throw error;
      tellProblem(error.field, error.message);
      return null;
    }
  }

  async #run() {
    if (this.#running) return;
    clearProblems();
    const models = this.models.value;
    const session = byId("keep").checked ? byId("session_id").value.trim() || newSession() : "";
    const body = this.#request(session);
    if (models.length === 0) tell(byId("models-problem"), "Choose at least one model.");
    if (!body || models.length === 0) return;
    this.#setRunning(true);
    byId("results").replaceChildren();
    this.#answers = models.map((model) => new Answer(model));
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
    for (const { refused } of this.#answers) if (refused) tellProblems(refused.details);
    const done = this.#answers.filter((answer) => answer.succeeded).length;
    const status = byId("status");
    status.textContent = `${done} of ${this.#answers.length} answered`;
    // What was refused before it was a request is in no session.
    if (!session || this.#answers.every(({ refused }) => refused)) return;
    status.append(", kept as session ", this.#sessionLink(session));
  }

  #sessionLink(session) {
    const { requests } = this.form.dataset;
    if (!requests) return session;
    const query = new URLSearchParams({ project: this.api.project, session });
    return element("a", { href: `${requests}?${query}` }, session);
  }
}

// Of equals the one named first, as the comparison of the API has it.
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
