"""HTTP: a package for each kind of endpoint, and `http` for what they share."""
