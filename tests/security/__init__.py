"""Attacks of other users of the machine, each against a real process."""
