"""Access rights: people's roles, the rights of each role, and one table of the right that each operation needs."""
