"""The answers of the analytics endpoints: typed dictionaries and the functions that fill them, by subject.

Measured money is a JSON number: a double prints the ten places of any sum below 100,000 dollars exactly. Texts that
people and models wrote are null for a reader without content (`wire.texts`).
"""
