"""The chat with the agent as a page of the admin."""
