"""The state of a web worker while it serves: its clients, time limits, readiness and announcements."""
