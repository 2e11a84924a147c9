"""Changes answers of every provider in ways in which vendors change theirs, and tests that the rules of answers still
hold."""
