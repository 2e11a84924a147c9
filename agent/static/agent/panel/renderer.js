// Shows Markdown as plain text until the service has rendered it as safe HTML (agent/panel/markdown.py).

const MAX_CACHED = 300;

export class Renderer {
  #html = new Map();
  #waiting = [];

  // The root of `api` is the rendering endpoint; one request takes `maxTexts` texts of `maxCharacters` characters. What
  // the texts name in the project becomes a link.
  constructor(api, project, maxTexts, maxCharacters) {
    Object.assign(this, { api, project, maxTexts, maxCharacters });
  }

  show(place, text) {
    place.textContent = text;
    // A text that is too long to be rendered stays plain text.
    if (!text.trim() || [...text].length > this.maxCharacters) return;
    if (this.#html.has(text)) {
      put(place, this.#html.get(text));
      return;
    }
    this.#waiting.push({ place, text });
    if (this.#waiting.length === 1) queueMicrotask(() => this.#render(this.#waiting.splice(0)));
  }

  async #render(waiting) {
    for (let at = 0; at < waiting.length; at += this.maxTexts) {
      const batch = waiting.slice(at, at + this.maxTexts);
      const html = await this.#fetchHtml(batch.map(({ text }) => text));
      batch.forEach(({ place, text }, index) => {
        if (html[index] === undefined) return;
        this.#html.set(text, html[index]);
        put(place, html[index]);
      });
    }
    for (const text of [...this.#html.keys()].slice(0, -MAX_CACHED)) this.#html.delete(text);
  }

  async #fetchHtml(texts) {
    try {
      return (await this.api.post("", { texts, project_id: this.project })).html;
    } catch {
      // The plain text can be read; the next message will report that the service is unreachable.
      return [];
    }
  }
}

function put(place, html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  place.replaceChildren(template.content);
  place.classList.add("rendered");
}
