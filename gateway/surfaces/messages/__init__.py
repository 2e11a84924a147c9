"""Anthropic's Messages API as a client protocol (https://platform.claude.com/docs/en/api/messages)."""
