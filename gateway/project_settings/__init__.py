"""The settings that a project has made about its gateway, as immutable values without a database behind them."""
