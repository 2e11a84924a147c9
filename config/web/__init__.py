"""The HTTP protocol of a web worker: malformed, oversized and slow requests never reach the application."""
