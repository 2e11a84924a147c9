"""The tables of features, one file per feature; `gateway.models` imports all of them."""
