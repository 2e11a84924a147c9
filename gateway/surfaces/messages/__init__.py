"""https://platform.claude.com/docs/en/api/messages"""
