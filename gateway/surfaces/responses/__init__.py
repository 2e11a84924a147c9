"""https://platform.openai.com/docs/api-reference/responses"""
