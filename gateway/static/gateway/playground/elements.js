// Small steps on the document. What a model, a client or another operator wrote comes in as text, never as HTML.

export const byId = (id) => document.getElementById(id);

export const partOf = (root, name) => root.querySelector(`[data-part="${name}"]`);

export const fromTemplate = (id) => byId(id).content.firstElementChild.cloneNode(true);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

export function option(value, label, selected = false) {
  return new Option(label, value, selected, selected);
}

// Shows a text where there is one, and hides the place where there is none.
export function tell(place, text) {
  place.textContent = text;
  place.hidden = !text;
}
