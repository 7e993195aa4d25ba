"""Alerts: which events become alerts, on which channel, and how each delivery fares."""
