"""The code that runs in child processes. It never imports `app`."""
