"""How far an evaluator can be trusted: its verdicts beside those of people on the same answers."""
