"""OpenAI's transcriptions of audio (https://platform.openai.com/docs/api-reference/audio/createTranscription)."""
