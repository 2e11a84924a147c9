// A stored request as a state of the playground: its messages, model and parameters.

const ROLES = ["user", "assistant", "system"];
// Roles of other protocols and of tools, which the playground's models take as these.
const SAME = { developer: "system", tool: "user", function: "user" };
const NAMES = { max_completion_tokens: "max_tokens", max_output_tokens: "max_tokens", stop_sequences: "stop" };

// Returns the state, and the number of parts that are no text and were left out. Throws ApiError.
export async function storedRequest(api, requestId) {
  const path = `requests/${encodeURIComponent(requestId)}`;
  const [request, conversation] = await Promise.all([api.get(path), api.get(`${path}/conversation`)]);
  let leftOut = 0;
  const messages = conversation.turns.map(({ role, parts }) => {
    const texts = parts.map(textOf);
    leftOut += texts.filter((text) => text === null).length;
    return { role: ROLES.includes(role) ? role : SAME[role] ?? "user", content: texts.filter(Boolean).join("\n\n") };
  });
  const model = request.provider && request.model ? `${request.provider}/${request.model}` : request.requested_model;
  return {
    state: { messages: messages.filter(({ content }) => content), models: model ? [model] : [], parameters: parameters(conversation) },
    leftOut,
  };
}

// Returns the text that stands for a part in a message; null for a part that no text can stand for.
function textOf({ kind, text, name }) {
  if (kind === "text" || kind === "refusal" || kind === "tool_result") return text;
  return kind === "tool_call" ? `${name}(${text})` : null;
}

function parameters({ parameters: given }) {
  const found = {};
  for (const [name, value] of Object.entries(given)) {
    const shown = Array.isArray(value) ? value[0] : value;
    if (["string", "number"].includes(typeof shown)) found[NAMES[name] ?? name] = String(shown);
  }
  return found;
}
