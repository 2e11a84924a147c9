"""The client protocol whose translation is the identity (docs/chat-completions.md)."""
