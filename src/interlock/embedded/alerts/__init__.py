"""Alerts on their way to people: the durable queue, its rows, and how it is shown."""
