// Calls the client for TypeScript as the lines of its input say, and answers each with a line of JSON.
import { createInterface } from "node:readline";

const { PromptGateway, PromptGatewayError } = await import(process.argv[2]);

let client;
let now = 1_000_000;

async function result(promise) {
  try {
    return { value: await promise };
  } catch (error) {
    if (!(error instanceof PromptGatewayError)) {
      throw error;
    }
    return { refused: { kind: error.name, status: error.status, code: error.code } };
  }
}

const commands = {
  new({ base_url, api_key, project_id, timeout }) {
    const options = { baseUrl: base_url, apiKey: api_key, projectId: project_id, timeoutMs: timeout * 1000 };
    client = new PromptGateway({ ...options, clock: () => now });
    return {};
  },
  advance({ seconds }) {
    now += seconds;
    return {};
  },
  get: ({ name, options }) => result(client.getPrompt(name, options)),
  async get_at_once({ count }) {
    return { found: await Promise.all(Array.from({ length: count }, () => result(client.getPrompt("support")))) };
  },
  call: ({ name, arguments: given }) => result(client[name](...given)),
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await commands[command.do](command))}\n`);
}
