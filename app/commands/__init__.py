"""What the commands do; `app.cli` says how they are called."""
