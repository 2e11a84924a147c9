"""The HTTP protocol of a web worker: it refuses malformed, oversized and slow requests before they reach the
application."""
