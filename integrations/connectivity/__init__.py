"""Tests of integrations: the cheapest call that the provider answers only with a valid credential.

`calls` says which call that is, `exchange` sends it, `outcomes` says what the answer means, `trial` puts them
together, `services` stores the result.
"""
