"""Measurements. `python -m bench` runs them; a number in the documentation comes from here."""
