"""OpenAI's older completions of a text (https://platform.openai.com/docs/api-reference/completions)."""
