"""`manage.py demo`: plays conversations through OpenAI's SDK and shows the service's records of them."""
