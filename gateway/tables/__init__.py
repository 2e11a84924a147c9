"""The tables of features, one file a feature; `gateway.models` imports all of them."""
