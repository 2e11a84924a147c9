"""Pure functions that find things in a text, with their places. Every pattern matches in linear time."""
