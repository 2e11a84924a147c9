"""What a web worker holds while it serves: its clients, time limits, readiness and announcements."""
