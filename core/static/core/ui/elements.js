// Helpers for the document. Text of models, clients and other operators is inserted as text, never as HTML.

export const byId = (id) => document.getElementById(id);

export const partOf = (root, name) => root.querySelector(`[data-part="${name}"]`);

export const fromTemplate = (id) => byId(id).content.firstElementChild.cloneNode(true);

export function element(name, properties = {}, ...children) {
  const created = Object.assign(document.createElement(name), properties);
  created.append(...children);
  return created;
}

export function option(value, label, selected = false) {
  return new Option(label, value, selected, selected);
}

// Shows a text in its place, and hides the place of an empty text.
export function showText(place, text) {
  place.textContent = text;
  place.hidden = !text;
}
