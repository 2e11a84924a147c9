"""The client protocols of the gateway: each package translates one to chat completions and back
(docs/architecture.md#surfaces)."""
