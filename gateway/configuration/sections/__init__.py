"""The sections of a project in the file, in the order in which they are applied: each may name what stands above it."""
