"""`manage.py demo`: conversations played through the official OpenAI SDK, and what the service recorded of them."""
