/** Managed prompts, feedback and scores of Prompt Gateway, for applications. Needs `fetch` alone. */

export { PromptGateway } from "./client.js";
export type { ClientOptions, Feedback, PromptOptions, Score } from "./client.js";
export { PromptGatewayError, UnavailableError } from "./errors.js";
export { fallbackPrompt } from "./prompt.js";
export type { Message, Prompt } from "./prompt.js";
