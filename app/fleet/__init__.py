"""The workers and who gets what: fair queue, dispatcher, slots, engines."""
