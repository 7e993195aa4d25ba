"""The watchdog: its checks, what it may leave out, and when it has to look again."""
