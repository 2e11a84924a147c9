"""Code that the dialects share: reading requests, writing completions, failures, streams, endpoints and redaction."""
