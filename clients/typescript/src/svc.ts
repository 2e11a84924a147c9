#!/usr/bin/env node
import { main } from "./command/main.js";

process.exitCode = await main(process.argv.slice(2));
