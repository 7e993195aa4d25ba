"""The packages of the functions: one zip each, with what it imports and nothing else, the same bytes every time."""
