"""`manage.py demo`: plays conversations through the official OpenAI SDK, and shows the service's records of them."""
