"""The agent's tools for clients of the Model Context Protocol."""
