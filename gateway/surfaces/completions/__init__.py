"""OpenAI's legacy text completions (https://platform.openai.com/docs/api-reference/completions)."""
