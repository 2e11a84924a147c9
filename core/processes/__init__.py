"""The processes of an installation: their locks, their background work, and what they tell each other."""
