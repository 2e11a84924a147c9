"""Counts of what requests, chunks and records take, which do not depend on the machine, and their bounds."""
