"""Pure functions over text: what it holds, and where. Every pattern is matched in time linear in the text."""
