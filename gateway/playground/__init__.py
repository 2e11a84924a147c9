"""The playground: one model or several side by side, asked through the gateway's own pipeline."""
