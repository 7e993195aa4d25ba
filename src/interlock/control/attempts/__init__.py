"""An attempt of a run, from its opening to its outcome: opened, started or claimed, watched, ended."""
