// Drives the official npm SDK against the gateway: only base URL and key are set. Prints one JSON object of what it saw.
// It is copied into the folder where the SDK is installed, because Node looks for packages from the script's own folder.
import OpenAI from "openai";

const [baseURL, apiKey, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const messages = [{ role: "user", content: "Say hello, Grüße 🌊" }];
const tools = [
  {
    type: "function",
    function: {
      name: "get_weather",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  },
];
const seen = {};

const { data, response } = await client.chat.completions.create({ model, messages }).withResponse();
seen.text = data.choices[0].message.content;
seen.usage = data.usage;
seen.requestId = response.headers.get("x-request-id");
seen.provider = response.headers.get("x-svc-provider");

seen.streamed = "";
seen.chunksWithUsage = 0;
for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
  seen.streamed += chunk.choices[0]?.delta?.content ?? "";
  seen.chunksWithUsage += chunk.usage ? 1 : 0;
}

const called = await client.chat.completions.create({ model, messages, tools, tool_choice: "required" });
seen.call = called.choices[0].message.tool_calls[0].function;
seen.finish = called.choices[0].finish_reason;

const helper = client.chat.completions.stream({ model, messages, tools, tool_choice: "required" });
seen.streamedCall = (await helper.finalChatCompletion()).choices[0].message.tool_calls[0].function;

const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false };
const shaped = await client.chat.completions.create({
  model,
  messages,
  response_format: { type: "json_schema", json_schema: { name: "shape", strict: true, schema } },
});
seen.shaped = JSON.parse(shaped.choices[0].message.content);

try {
  await client.chat.completions.create({ model, messages, temperature: 9 });
} catch (error) {
  seen.error = { status: error.status, code: error.code, type: error.type, requestID: error.requestID };
}

process.stdout.write(JSON.stringify(seen));
