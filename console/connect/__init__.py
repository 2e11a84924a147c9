"""How an application is connected: the page, and the box that other pages show."""
