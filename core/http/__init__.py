"""What Django serves of HTTP: hosts, paths, bodies, failures."""
