"""Commands as processes of their own: `target` starts and follows them, the others are parts of it."""
