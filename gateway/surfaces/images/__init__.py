"""OpenAI's generation of images (https://platform.openai.com/docs/api-reference/images/create)."""
