"""Number probes."""
