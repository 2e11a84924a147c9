"""HTTP as a web worker speaks it: what is refused before a request reaches the application."""
