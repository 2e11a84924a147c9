// Markdown, shown as text until the service has made harmless HTML of it (agent/panel/markdown.py).

const KEPT = 300;

export class Rendered {
  #html = new Map();
  #waiting = [];

  // `api` has the path as its root; `texts` and `characters` are how much it takes at once.
  constructor(api, texts, characters) {
    Object.assign(this, { api, texts, characters });
  }

  show(place, text) {
    place.textContent = text;
    // What is too long to be rendered stays the text that it is.
    if (!text.trim() || [...text].length > this.characters) return;
    if (this.#html.has(text)) {
      put(place, this.#html.get(text));
      return;
    }
    this.#waiting.push({ place, text });
    if (this.#waiting.length === 1) queueMicrotask(() => this.#render(this.#waiting.splice(0)));
  }

  async #render(waiting) {
    for (let at = 0; at < waiting.length; at += this.texts) {
      const batch = waiting.slice(at, at + this.texts);
      const made = await this.#made(batch.map(({ text }) => text));
      batch.forEach(({ place, text }, index) => {
        if (made[index] === undefined) return;
        this.#html.set(text, made[index]);
        put(place, made[index]);
      });
    }
    for (const text of [...this.#html.keys()].slice(0, -KEPT)) this.#html.delete(text);
  }

  async #made(texts) {
    try {
      return (await this.api.post("", { texts })).html;
    } catch {
      // The text is there and can be read; that the service is away is told by the next message.
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
