"""OpenAI's speech (https://platform.openai.com/docs/api-reference/audio/createSpeech)."""
