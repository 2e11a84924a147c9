"""Whether an integration works: the cheapest call that its provider answers only to whoever may use it.

`calls` says which call that is, `exchange` sends it, `outcomes` says what the answer means, `redaction` keeps the
credential out of it, `trial` puts them together, `services` stores the result.
"""
