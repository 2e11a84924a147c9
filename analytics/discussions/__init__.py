"""What people say to each other about a request or a session, and who looks after it (docs/discussions.md)."""
