"""HTTP: one module per client family."""
