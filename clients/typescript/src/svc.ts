#!/usr/bin/env node
import { main } from "./command/main.js";
import { NOT_RUN } from "./command/outcome.js";

// The exit code of Node.js for an exception is that of a verdict here. A message could hold the key: its place does not.
process.on("uncaughtException", (error) => {
  const places = (error.stack ?? "").split("\n").filter((line) => line.startsWith("    at "));
  process.stderr.write(`${["svc: The command failed.", error.name, ...places].join("\n")}\n`);
  process.exit(NOT_RUN);
});
process.exitCode = await main(process.argv.slice(2));
