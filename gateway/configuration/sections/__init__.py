"""The sections of a project in the order in which they are applied: each may name entries of earlier ones."""
