"""What becomes due by the clock: ticks, probes, timers."""
