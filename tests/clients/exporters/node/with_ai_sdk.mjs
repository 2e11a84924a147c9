// The AI SDK with its package for OpenTelemetry, and OpenTelemetry's exporter in protobuf.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { OpenTelemetry } from "@ai-sdk/otel";
import { context, propagation, trace } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { BatchSpanProcessor, NodeTracerProvider } from "@opentelemetry/sdk-trace-node";
import { generateText, registerTelemetry } from "ai";

const { MODEL, OPENAI_API_KEY, OPENAI_BASE_URL, SESSION } = process.env;

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
registerTelemetry(new OpenTelemetry({ runtimeContext: true }));
const gateway = createOpenAICompatible({ name: "gateway", baseURL: OPENAI_BASE_URL, apiKey: OPENAI_API_KEY });

await trace.getTracer("application").startActiveSpan("handle turn", async (span) => {
  const headers = {};
  propagation.inject(context.active(), headers);
  await generateText({
    model: gateway(MODEL),
    prompt: "Hello.",
    headers,
    runtimeContext: { sessionId: SESSION },
    telemetry: { includeRuntimeContext: { sessionId: true } },
  });
  span.end();
});
await provider.shutdown();
