"""What the control functions need of the world, as small Protocols. The docstrings state the obligations."""
