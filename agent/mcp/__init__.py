"""The agent's tools, and the project's managed prompts, for clients of the Model Context Protocol."""
