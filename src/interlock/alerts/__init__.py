"""Where alerts go: one module per channel, and what they say. Sending only: what is sent when, and what follows from a
failure, is decided by the alert-dispatcher and its queue.
"""
