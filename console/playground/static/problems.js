// Shows the problems of refused fields: beside the field if the form has it, else below the form.

import { byId, element, showText } from "../../core/ui/elements.js";

export class FieldProblem extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

const PLACES = [
  [/^prompt_variables\.(.+)$/, (name) => fieldProblem(document.querySelector(`[data-variable="${CSS.escape(name)}"]`))],
  [/^messages/, () => byId("messages-problem")],
  [/^(?:model|models|compare_models)$/, () => byId("models-problem")],
  [/^(?:prompt_config|prompt_version|prompt_variables)$/, () => byId("prompt_config-problem")],
  [/^(.+)$/, (name) => fieldProblem(document.querySelector(`#playground [name="${CSS.escape(name)}"]`))],
];

export function clearProblems() {
  for (const place of document.querySelectorAll("#playground .problem")) showText(place, "");
  for (const field of document.querySelectorAll("#playground [aria-invalid]")) field.removeAttribute("aria-invalid");
}

// Shows the lists of messages in `details`, by field. Returns whether the form has a place for each of them.
export function showProblems(details) {
  const places = Object.entries(details).map(([name, texts]) => showProblem(name, texts.join(" ")));
  return places.length > 0 && places.every(Boolean);
}

export function showProblem(name, text) {
  for (const [pattern, find] of PLACES) {
    const found = pattern.exec(name);
    const place = found && find(found[1]);
    if (place) {
      showText(place, text);
      return true;
    }
  }
  showText(byId("general-problem"), `${name}: ${text}`);
  return false;
}

function fieldProblem(field) {
  if (!field) return null;
  const id = `${field.id}-problem`;
  let place = byId(id);
  if (!place) {
    place = element("p", { className: "problem", id });
    place.setAttribute("role", "alert");
    field.after(place);
    field.setAttribute("aria-describedby", id);
  }
  field.setAttribute("aria-invalid", "true");
  return place;
}
