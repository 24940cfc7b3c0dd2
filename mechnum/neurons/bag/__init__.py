"""The bag of heuristics: kinds, matches, knock-outs, and which description is better."""
