"""The implementation of the commands. `app.cli` defines their arguments."""
