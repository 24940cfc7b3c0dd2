"""Steering states towards numbers, with vectors that are found by inverting probes."""
