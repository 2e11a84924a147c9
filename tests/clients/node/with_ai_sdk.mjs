// The AI SDK: its provider for OpenAI, which speaks the Responses API, those for compatible servers and for Anthropic.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { embedMany, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

import { MODEL, NEXT_PROMPT, OTHER_TEXT, REASONING_MODEL, run, weatherIn } from "./cases.mjs";

const City = z.object({ name: z.string(), days: z.number().int() });
const options = (apiKey) => (apiKey ? { apiKey } : {});
const usageOf = ({ inputTokens, outputTokens }) => [inputTokens, outputTokens];

const variant = (provider) => {
  const model = provider()(MODEL);
  const withTool = async (prompt, generate) => {
    const cities = [];
    const get_weather = tool({
      description: "Returns the weather.",
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => {
        cities.push(city);
        return weatherIn(city);
      },
    });
    const { text } = await generate({ model, prompt, tools: { get_weather }, stopWhen: stepCountIs(3) });
    return { text: await text, cities };
  };
  return {
    async whole(prompt) {
      const { text, usage } = await generateText({ model, prompt });
      return { text, usage: usageOf(usage) };
    },
    async streamed(prompt) {
      const result = streamText({ model, prompt });
      const pieces = [];
      for await (const piece of result.textStream) {
        pieces.push(piece);
      }
      return { text: pieces.join(""), pieces: pieces.length, usage: usageOf(await result.usage) };
    },
    tools: (prompt) => withTool(prompt, generateText),
    tools_streamed: (prompt) => withTool(prompt, streamText),
    async turns(prompt) {
      const options = { model: provider()(REASONING_MODEL), providerOptions: { openai: { store: false } } };
      const messages = [{ role: "user", content: prompt }];
      const { reasoningText, response } = await generateText({ ...options, messages });
      messages.push(...response.messages, { role: "user", content: NEXT_PROMPT });
      return { reasoning: reasoningText, text: (await generateText({ ...options, messages })).text };
    },
    async structured(prompt) {
      const { output } = await generateText({ model, prompt, output: Output.object({ schema: City }) });
      return { value: output };
    },
    // The AI SDK itself keeps Anthropic's temperatures within their bounds.
    ask: (prompt, { key, model: name, bad }) =>
      generateText({ model: provider(key)(name), prompt, topP: bad, maxRetries: 0 }),
  };
};

const embeddings = {
  async embedded(prompt) {
    const result = await embedMany({ model: createOpenAI().embedding(MODEL), values: [prompt, OTHER_TEXT] });
    return { vectors: result.embeddings };
  },
  ask: (prompt, { key, model }) =>
    embedMany({ model: createOpenAI(options(key)).embedding(model), values: [prompt], maxRetries: 0 }),
};

await run({
  embeddings,
  responses: variant((key) => createOpenAI(options(key))),
  compatible: variant((key) =>
    createOpenAICompatible({
      name: "gateway",
      baseURL: process.env.OPENAI_BASE_URL,
      apiKey: key ?? process.env.OPENAI_API_KEY,
      supportsStructuredOutputs: true,
      includeUsage: true,
    }),
  ),
  messages: variant((key) => createAnthropic({ baseURL: `${process.env.ANTHROPIC_BASE_URL}/v1`, ...options(key) })),
});
