"""OpenAI's Moderations API (https://platform.openai.com/docs/api-reference/moderations)."""
