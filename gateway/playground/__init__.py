"""The playground: one model or several side by side, called through the gateway's own pipeline."""
