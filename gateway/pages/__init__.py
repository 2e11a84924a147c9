"""Pages of the gateway's part of the admin: prompts and trials of them, limits, guardrails and settings."""
