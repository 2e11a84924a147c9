"""Spans and logs of applications: OTLP in, the collector exporter's tables, and a session's telemetry out."""
