import { open } from "node:fs/promises";
import { PromptGatewayError } from "../errors.js";
import type { Http } from "../http.js";
import { findDataset, unreadable } from "./names.js";
import type { Entry, Note } from "./service.js";
import { Service } from "./service.js";

const ITEMS_BETWEEN = 1000;
const NEWLINE = 10;

/**
 * Adds the items that the data set does not have, as one version, and returns how many; or adds nothing. The service
 * checks the file as a whole before it adds anything, and names the line that is wrong. A file may be sent again after
 * a lost connection, since its items are known again.
 */
export async function push(
  http: Http,
  options: { file: string; dataset: string; timeoutMs: number },
  note: Note,
  interrupted: AbortSignal,
): Promise<Entry> {
  const service = new Service(http, options.timeoutMs, note, interrupted);
  const file = await open(options.file).catch((error: unknown) => {
    throw unreadable(options.file, error);
  });
  await file.close();
  const name = options.dataset;
  const there = await findDataset(service, name);
  const dataset = there ?? (await made(service, name));
  try {
    const headers = { "Content-Type": "application/x-ndjson" };
    const path = `datasets/${dataset["id"]}/import`;
    const { body } = await service.untilAnswered(() =>
      service.send("POST", path, { headers, query: { only_new: "true" }, stream: lines(options.file, note) }),
    );
    return added(body);
  } catch (error) {
    if (there === undefined && error instanceof PromptGatewayError) {
      // Nothing is left of a set that was made for a file that is wrong.
      await service.call("DELETE", `datasets/${dataset["id"]}`, {});
    }
    throw error;
  }
}

async function made(service: Service, name: string): Promise<Entry> {
  const answer = await service.call("POST", "datasets", { body: { name } }, async () => {
    const body = await findDataset(service, name);
    return body === undefined ? undefined : { status: 200, headers: new Headers(), body };
  });
  return answer.body;
}

/** Returns the bytes of a file, and tells how many of its lines have been sent. */
function lines(file: string, note: Note): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      let count = 0;
      let next = ITEMS_BETWEEN;
      const handle = await open(file);
      for await (const piece of handle.createReadStream()) {
        controller.enqueue(piece as Uint8Array);
        count += (piece as Uint8Array).filter((byte) => byte === NEWLINE).length;
        if (count >= next) {
          note(`${count} lines are sent`);
          next = count - (count % ITEMS_BETWEEN) + ITEMS_BETWEEN;
        }
      }
      controller.close();
    },
  });
}

function added(body: Entry): Entry {
  const dataset: Entry = body["dataset"];
  return {
    dataset_id: dataset["id"],
    name: dataset["name"],
    version: dataset["version"],
    item_count: dataset["item_count"],
    added: body["added"],
    already_there: body["left_out"]["already_there"],
  };
}
