// The panel of the chat: the list of a project's conversations, and the one that is open.

import { Api, ApiError } from "../../core/ui/api.js";
import { byId, partOf, showText } from "../../core/ui/elements.js";
import { BrowserStorage } from "../../core/ui/storage.js";
import { Conversations } from "./conversations.js";
import { Renderer } from "./renderer.js";
import { Thread } from "./thread.js";
import { isFailure } from "./tool.js";

class Page {
  #abort = null;
  // A token of the open conversation: responses that belong to an earlier one are dropped.
  #view = null;
  // A promise that is fulfilled when the stored messages are shown or could not be loaded.
  #shown = null;
  #origin = JSON.parse(byId("agent-origin-data")?.textContent ?? "null");

  constructor(panel) {
    this.panel = panel;
    const token = byId("agent-composer").elements.csrfmiddlewaretoken.value;
    const { rendered, renderedTexts, renderedCharacters, user } = panel.dataset;
    this.api = new Api(token, "/api/agent/");
    this.storage = new BrowserStorage(`agent.${user}`);
    this.state = { conversations: {}, draft: "", ...this.storage.read() };
    this.api.project = panel.dataset.project;
    const renderer = new Renderer(new Api(token, rendered), panel.dataset.project, Number(renderedTexts), Number(renderedCharacters));
    this.thread = new Thread(this.api, renderer, {
      retry: (text) => this.#send(text),
      reload: () => this.#open(this.thread.id),
    });
    this.conversations = new Conversations(this.api, {
      open: (row) => this.#open(row.conversation_id),
      remove: (row) => this.#confirmDeletion(row),
    });
    this.message = byId("agent-message");
    this.#listen();
  }

  get #isBeside() {
    return this.panel.classList.contains("beside");
  }

  async start() {
    this.message.value = this.state.draft;
    await this.#openProject();
    this.panel.dataset.ready = "true";
  }

  #listen() {
    for (const button of byId("agent-questions").querySelectorAll("[data-question]")) {
      button.addEventListener("click", () => this.#send(button.textContent));
    }
    byId("agent-new").addEventListener("click", () => this.#open(null).then(() => this.message.focus()));
    byId("agent-older").addEventListener("click", () => this.#reportFailure(() => this.conversations.load({ older: true })));
    byId("agent-earlier").addEventListener("click", () => this.#reportFailure(() => this.thread.loadEarlier()));
    byId("agent-stop").addEventListener("click", () => this.#abort?.abort());
    partOf(byId("agent-notice"), "again").addEventListener("click", () => this.#openProject());
    partOf(byId("agent-origin"), "remove").addEventListener("click", () => this.#dropOrigin());
    byId("agent-composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send(this.message.value);
    });
    this.message.addEventListener("input", () => this.#saveState({ draft: this.message.value }));
    this.message.addEventListener("keydown", (event) => {
      // During input-method composition, Enter accepts a word.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.#send(this.message.value);
    });
    byId("agent-deletion").addEventListener("close", ({ target }) => {
      if (target.returnValue === "delete") this.#reportFailure(() => this.#remove(target.dataset.conversation));
    });
  }

  #saveState(state) {
    Object.assign(this.state, state);
    this.storage.write(this.state);
  }

  async #openProject() {
    const { project } = this.api;
    this.#showOrigin();
    this.conversations.clear();
    await this.#reportFailure(async () => {
      await this.#show(this.state.conversations[project] ?? null);
      await this.conversations.load();
    });
  }

  #open(id) {
    return this.#reportFailure(() => this.#show(id));
  }

  // Opens a conversation, or an empty one for null. A running answer is aborted.
  async #show(id) {
    this.#abort?.abort();
    const view = (this.#view = {});
    this.#shown = null;
    this.thread.clear();
    byId("agent-status").textContent = "";
    this.#showProblem(null);
    this.#setCurrent(id);
    byId("agent-welcome").hidden = id !== null;
    byId("agent-questions").hidden = false;
    if (id === null) return;
    const showing = this.thread.load(id).then((loaded) => {
      if (view === this.#view) this.thread.show(loaded);
    });
    this.#shown = showing.catch(() => {});
    try {
      await showing;
    } catch (error) {
      if (error.code !== "conversation_not_found" || view !== this.#view) throw error;
      // The conversation was deleted since it was last open.
      await this.#show(null);
      byId("agent-status").textContent = "The conversation is gone; the next message begins a new one.";
    }
  }

  #setCurrent(id) {
    this.thread.id = id;
    this.conversations.current = id;
    this.#saveState({ conversations: { ...this.state.conversations, [this.api.project]: id ?? undefined } });
  }

  // Runs `work`, and shows a failure of the API above the messages.
  async #reportFailure(work) {
    const { project } = this.api;
    try {
      await work();
      if (project === this.api.project) this.#notice("");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (project === this.api.project) this.#notice(explanation(error));
    }
  }

  #notice(text) {
    showText(partOf(byId("agent-notice"), "text"), text);
    byId("agent-notice").hidden = !text;
  }

  async #send(text) {
    if (this.#abort || !text.trim()) return;
    const view = this.#view;
    const origin = this.#originOfProject();
    const abort = (this.#abort = new AbortController());
    this.#showProblem(null);
    byId("agent-welcome").hidden = true;
    byId("agent-questions").hidden = true;
    if (this.message.value === text) this.#setDraft("");
    this.#setRunning(true, "The agent is answering");
    await this.#shown;
    if (view !== this.#view) {
      // The user opened another conversation before this one was loaded.
      this.#abort = null;
      this.#setRunning(false, "");
      if (!this.message.value) this.#setDraft(text);
      return;
    }
    const question = this.thread.addQuestion(text, origin);
    const answer = this.thread.addAnswer();
    answer.element.dataset.live = "true";
    let ending = "Done";
    try {
      ending = await this.#stream(this.#body(text, origin), abort.signal, answer, view);
    } catch (error) {
      ending = this.#showFailure(error, { question, answer, text });
    } finally {
      this.#abort = null;
      this.#setRunning(false, view === this.#view ? ending : "");
    }
    this.thread.follow(() => answer.end());
    if (ending === "Stopped") answer.note("Stopped.");
    if (view === this.#view) await this.#reportFailure(() => this.conversations.load());
  }

  #body(text, origin) {
    const body = { message: text };
    if (this.thread.id) body.conversation_id = this.thread.id;
    if (origin) body.page_context = { page: origin.page, data: origin.data };
    return body;
  }

  // Shows the events of a chat and returns its outcome. A stream that ends without `done` or `error` has broken.
  async #stream(body, signal, answer, view) {
    for await (const { data } of this.api.stream("chat", body, signal)) {
      const event = JSON.parse(data);
      if (view !== this.#view) return "Stopped";
      if (body.page_context) this.#dropOrigin();
      if (event.type === "done") return "Done";
      if (event.type === "error") {
        answer.fail(event.content, "Retry", () => this.#send(body.message));
        return "Failed";
      }
      this.thread.follow(() => this.#showEvent(event, answer));
    }
    throw new ApiError(0, { code: "unreachable", message: "The connection ended before the answer did." });
  }

  #showEvent(event, answer) {
    if (event.type === "conversation_created") {
      this.#setCurrent(event.conversation_id);
      this.#reportFailure(() => this.conversations.load());
    } else if (event.type === "text_delta") {
      answer.append(event.content);
    } else if (event.type === "tool_start") {
      answer.call(event.call_id, event.name);
      byId("agent-status").textContent = `The agent is calling ${event.name}`;
    } else if (event.type === "tool_result") {
      answer.result(event.call_id, event.content, isFailure(event.content));
      byId("agent-status").textContent = "The agent is answering";
    }
  }

  #showFailure(error, { question, answer, text }) {
    if (error.name === "AbortError") return "Stopped";
    if (!(error instanceof ApiError)) throw error;
    if (!error.status) {
      answer.fail(error.message, "Retry", () => this.#send(text));
      return "Failed";
    }
    // The service did not accept the message, so it returns to the input field.
    question.remove();
    answer.element.remove();
    if (!this.message.value) this.#setDraft(text);
    if (error.code === "conversation_not_found") this.#setCurrent(null);
    this.#showProblem(error);
    return "Not sent";
  }

  #setRunning(running, status) {
    byId("agent-send").disabled = running;
    byId("agent-stop").disabled = !running;
    byId("agent-messages").ariaBusy = String(running);
    byId("agent-status").textContent = status;
  }

  #setDraft(text) {
    this.message.value = text;
    this.#saveState({ draft: text });
  }

  #showProblem(error) {
    const problem = byId("agent-problem");
    problem.hidden = !error;
    showText(partOf(problem, "text"), error ? explanation(error) : "");
    const settings = partOf(problem, "settings");
    settings.hidden = error?.code !== "no_agent_model" || !settings.hasAttribute("href");
    const login = partOf(problem, "login");
    login.hidden = error?.status !== 401;
    login.href = `${this.panel.dataset.login}?${new URLSearchParams({ next: this.#isBeside ? location.pathname + location.search : location.pathname })}`;
  }

  #originOfProject() {
    const { project } = this.#origin ?? {};
    return !project || project === this.api.project ? this.#origin : null;
  }

  #showOrigin() {
    const origin = this.#originOfProject();
    byId("agent-origin").hidden = !origin;
    partOf(byId("agent-origin"), "page").textContent = origin?.page ?? "";
  }

  #dropOrigin() {
    this.#origin = null;
    this.#showOrigin();
    // After a reload the panel's own page has no origin any more; beside another page the address is not the panel's.
    if (!this.#isBeside) history.replaceState(null, "", location.pathname);
  }

  #confirmDeletion({ conversation_id: id, title }) {
    const dialog = byId("agent-deletion");
    byId("agent-deletion-text").textContent = `Delete “${title || "Untitled"}” with all its messages?`;
    dialog.dataset.conversation = id;
    dialog.returnValue = "";
    dialog.showModal();
  }

  async #remove(id) {
    try {
      await this.api.delete(`conversations/${id}`);
    } catch (error) {
      // Somebody else has already deleted the conversation.
      if (error.code !== "conversation_not_found") throw error;
    }
    if (id === this.thread.id) await this.#show(null);
    await this.conversations.load();
  }
}

function explanation({ status, code, message }) {
  if (status === 401) return "Your session in the admin is over.";
  if (code === "conversation_not_found") return "The conversation was deleted; trying again begins a new one.";
  if (code === "no_agent_model") return "No model answers here yet: none is chosen for the agent, and none is preferred.";
  return message;
}

const panel = byId("agent-root");
if (panel) new Page(panel).start();
