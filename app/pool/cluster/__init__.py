"""Processes on the nodes of a Ray cluster.

The server never imports Ray. `bridge` runs in the server and speaks with `driver`, a child process that is
Ray's driver; `driver` starts an `actor` for each worker, on its node; the actor spawns the worker's process.
"""
