"""Comments on requests and sessions, and their assignment to members (docs/discussions.md)."""
