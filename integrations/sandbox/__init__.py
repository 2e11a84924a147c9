"""A small provider of our own: OpenAI's dialect, deterministic answers, no account anywhere."""
