"""Estimates of effects from gradients, with exact values of the largest."""
