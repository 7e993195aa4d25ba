"""Jobs that are an HTTP request: `target` follows them, `calls` makes the requests, also those of probes."""
