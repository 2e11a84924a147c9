"""Online evaluations: a sample of the answers is scored while they are served, and every end is counted."""
