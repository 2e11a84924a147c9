"""The Gemini API as a client protocol."""
