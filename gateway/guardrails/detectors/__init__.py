"""Pure functions that find things in a text, with their places. Every pattern is matched in time linear in the text."""
