"""Proves on the operator's own servers what the gateway expects of them, in a scratch database that is then dropped."""
