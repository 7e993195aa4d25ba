"""Runs of Databricks: `target` follows them, `api` speaks with the workspace."""
