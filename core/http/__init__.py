"""HTTP around Django's views: hosts, paths, bodies, sign-ins and failures."""
