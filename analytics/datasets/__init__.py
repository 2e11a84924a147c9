"""Data sets: inputs with the answers that are expected of them, in versions, which experiments are made of."""
