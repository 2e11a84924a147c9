"""OpenAI's Embeddings API (https://platform.openai.com/docs/api-reference/embeddings)."""
