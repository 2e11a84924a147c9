"""What gives access to a provider: credentials, their destination, and the checks of what an integration holds."""
