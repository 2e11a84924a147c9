"""One web worker: the construction of its runtime, its start and its end, its state and its monitoring."""
