"""Circuits: edges, how much of the model they are, and their files."""
