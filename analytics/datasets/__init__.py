"""Data sets: versioned inputs with expected answers, which experiments are made of."""
