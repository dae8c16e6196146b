"""The client of a whisperfleet service, for the commands that are its users."""
