"""All that runs in child processes; never imports `app`."""
