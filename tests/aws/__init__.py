"""The AWS runtime on moto, in one process."""
