// Anthropic's SDK: the Messages API, its tool runner and its structured outputs.
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";

import { MODEL, run, weatherIn } from "./cases.mjs";

const City = z.object({ name: z.string(), days: z.number().int() });
const client = (apiKey) => new Anthropic(apiKey ? { apiKey } : {});
const asked = (prompt, model = MODEL) => ({ model, max_tokens: 200, messages: [{ role: "user", content: prompt }] });

const messages = {
  async whole(prompt) {
    const { content, usage } = await client().messages.create(asked(prompt));
    return { text: content[0].text, usage: [usage.input_tokens, usage.output_tokens] };
  },
  async streamed(prompt) {
    const stream = client().messages.stream(asked(prompt));
    const pieces = [];
    stream.on("text", (delta) => pieces.push(delta));
    const { content, usage } = await stream.finalMessage();
    return { text: content[0].text, pieces: pieces.length, usage: [usage.input_tokens, usage.output_tokens] };
  },
  tools: (prompt) => messages.withTool(prompt, (options) => client().beta.messages.toolRunner(options)),
  tools_streamed: (prompt) =>
    messages.withTool(prompt, async (options) => {
      let final;
      for await (const stream of client().beta.messages.toolRunner({ ...options, stream: true })) {
        final = await stream.finalMessage();
      }
      return final;
    }),
  async withTool(prompt, create) {
    const cities = [];
    const get_weather = betaZodTool({
      name: "get_weather",
      description: "Returns the weather.",
      inputSchema: z.object({ city: z.string() }),
      run: ({ city }) => {
        cities.push(city);
        return weatherIn(city);
      },
    });
    const final = await create({ ...asked(prompt), tools: [get_weather] });
    return { text: final.content[0].text, cities };
  },
  async structured(prompt) {
    const output_config = { format: zodOutputFormat(City) };
    return { value: (await client().messages.parse({ ...asked(prompt), output_config })).parsed_output };
  },
  ask: (prompt, { key, model, bad }) => client(key).messages.create({ ...asked(prompt, model), temperature: bad }),
};

const models = {
  async listed() {
    const names = (await client().models.list()).data.map((model) => model.id);
    return { names, name: (await client().models.retrieve(MODEL)).id };
  },
  ask: (prompt, { key, model }) => client(key).models.retrieve(model),
};

await run({ messages, models });
