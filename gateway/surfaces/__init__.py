"""The client protocols of the gateway: each package translates one protocol to chat completions and back (docs/architecture.md)."""
