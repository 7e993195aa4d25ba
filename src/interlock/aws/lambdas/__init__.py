"""Entry points of the six functions, thin: what is decided is decided in `control`."""
