"""What was committed, handed on: durable consumers, the live feed, the bus, and what failed for good."""
