"""The embedded engine on virtual time, its store in memory (SPEC 18): a year in seconds, always the same result."""
