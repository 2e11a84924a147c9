"""The sandbox: a small provider inside the product, with OpenAI's dialect, deterministic answers, and no account
anywhere."""
