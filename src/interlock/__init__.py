"""Interlock: the safety controller between "it is time" and "it is safe"."""

__version__ = "0.1.0"
