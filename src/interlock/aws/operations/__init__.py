"""What a person's machine asks of a deployed environment: no function imports it."""
