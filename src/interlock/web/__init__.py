"""The built page: `make ui` puts it into `dist/`, which git ignores and the wheel contains. Served by `api/web.py`."""
