// OpenAI's SDK: chat completions and the Responses API.
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

import { MODEL, OTHER_TEXT, run, weatherIn } from "./cases.mjs";

const City = z.object({ name: z.string(), days: z.number().int() });
const parameters = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const client = (apiKey) => new OpenAI(apiKey ? { apiKey } : {});
const asked = (prompt) => [{ role: "user", content: prompt }];

const chat = {
  async whole(prompt) {
    const { choices, usage } = await client().chat.completions.create({ model: MODEL, messages: asked(prompt) });
    return { text: choices[0].message.content, usage: [usage.prompt_tokens, usage.completion_tokens] };
  },
  async streamed(prompt) {
    const options = { model: MODEL, messages: asked(prompt), stream_options: { include_usage: true } };
    const stream = client().chat.completions.stream(options);
    const pieces = [];
    stream.on("content", (delta) => pieces.push(delta));
    const { usage } = await stream.finalChatCompletion();
    return { text: pieces.join(""), pieces: pieces.length, usage: [usage.prompt_tokens, usage.completion_tokens] };
  },
  tools: (prompt) => chat.withTool(prompt, {}),
  tools_streamed: (prompt) => chat.withTool(prompt, { stream: true }),
  async withTool(prompt, options) {
    const cities = [];
    const get_weather = ({ city }) => {
      cities.push(city);
      return weatherIn(city);
    };
    const runner = client().chat.completions.runTools({
      ...options,
      model: MODEL,
      messages: asked(prompt),
      tools: [
        { type: "function", function: { name: "get_weather", function: get_weather, parse: JSON.parse, parameters } },
      ],
    });
    return { text: await runner.finalContent(), cities };
  },
  async structured(prompt) {
    const answer = await client().chat.completions.parse({
      model: MODEL,
      messages: asked(prompt),
      response_format: zodResponseFormat(City, "city"),
    });
    return { value: answer.choices[0].message.parsed };
  },
  ask: (prompt, { key, model, bad }) =>
    client(key).chat.completions.create({ model, messages: asked(prompt), temperature: bad }),
};

const responses = {
  async whole(prompt) {
    const { output_text, usage } = await client().responses.create({ model: MODEL, input: prompt });
    return { text: output_text, usage: [usage.input_tokens, usage.output_tokens] };
  },
  async streamed(prompt) {
    const stream = client().responses.stream({ model: MODEL, input: prompt });
    const pieces = [];
    stream.on("response.output_text.delta", (event) => pieces.push(event.delta));
    const { output_text, usage } = await stream.finalResponse();
    return { text: output_text, pieces: pieces.length, usage: [usage.input_tokens, usage.output_tokens] };
  },
  tools: (prompt) => responses.withTool(prompt, (options) => client().responses.create(options)),
  tools_streamed: (prompt) => responses.withTool(prompt, (options) => client().responses.stream(options).finalResponse()),
  async withTool(prompt, create) {
    const tools = [{ type: "function", name: "get_weather", strict: true, parameters }];
    const first = await create({ model: MODEL, input: asked(prompt), tools });
    const call = first.output.find((item) => item.type === "function_call");
    const { city } = JSON.parse(call.arguments);
    const result = { type: "function_call_output", call_id: call.call_id, output: weatherIn(city) };
    // The SDK's streams add `parsed` and `parsed_arguments`, which OpenAI does not take back.
    const output = JSON.parse(JSON.stringify(first.output, (key, value) => (/^parsed/.test(key) ? undefined : value)));
    const input = [...asked(prompt), ...output, result];
    return { text: (await create({ model: MODEL, input, tools })).output_text, cities: [city] };
  },
  async structured(prompt) {
    const text = { format: zodTextFormat(City, "city") };
    return { value: (await client().responses.parse({ model: MODEL, input: prompt, text })).output_parsed };
  },
  ask: (prompt, { key, model, bad }) => client(key).responses.create({ model, input: prompt, temperature: bad }),
};

const embeddings = {
  async embedded(prompt) {
    const { data } = await client().embeddings.create({ model: MODEL, input: [prompt, OTHER_TEXT] });
    return { vectors: data.map((row) => row.embedding) };
  },
  ask: (prompt, { key, model }) => client(key).embeddings.create({ model, input: prompt }),
};

const models = {
  async listed() {
    const names = (await client().models.list()).data.map((model) => model.id);
    return { names, name: (await client().models.retrieve(MODEL)).id };
  },
  ask: (prompt, { key, model }) => client(key).models.retrieve(model),
};

await run({ chat, responses, embeddings, models });
