"""Targets on AWS, a module each, and what all of them are made of: `clients`, `errors`, `logs`, `console`."""
