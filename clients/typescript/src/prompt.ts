export interface Message {
  role: string;
  content: unknown;
}

/**
 * A version of a prompt. `messages` go before the application's own, `attributes` onto the spans of its calls.
 * `source` is `fallback` for the text given as `fallback`.
 */
export interface Prompt {
  name: string;
  config_id: string;
  version_id: string;
  version_number: number;
  label: string | null;
  model: string | null;
  temperature: number | null;
  max_tokens: number | null;
  tools: Record<string, unknown>[];
  response_format: Record<string, unknown> | null;
  variables: { name: string; type: string; required: boolean }[];
  messages: Message[];
  system_prompt: string;
  rendered: boolean;
  rollout: { id: string; arm: "baseline" | "target"; share: number } | null;
  attributes: Record<string, string>;
  source: "service" | "fallback";
}

/** Returns a prompt whose one message is the system's text. */
export function fallbackPrompt(name: string, text: string): Prompt {
  return {
    name,
    config_id: "",
    version_id: "",
    version_number: 0,
    label: null,
    model: null,
    temperature: null,
    max_tokens: null,
    tools: [],
    response_format: null,
    variables: [],
    messages: [{ role: "system", content: text }],
    system_prompt: text,
    rendered: true,
    rollout: null,
    attributes: {},
    source: "fallback",
  };
}

/** Returns the prompt of an answer, or undefined for what is none. */
export function promptOf(answer: Record<string, unknown>): Prompt | undefined {
  const isPrompt =
    typeof answer["name"] === "string" &&
    typeof answer["version_number"] === "number" &&
    typeof answer["system_prompt"] === "string" &&
    Array.isArray(answer["messages"]) &&
    isObject(answer["attributes"]);
  return isPrompt ? ({ ...answer, source: "service" } as unknown as Prompt) : undefined;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
