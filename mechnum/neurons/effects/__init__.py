"""What neurons do to the answer: rankings, ablations, replacements, shares of MLPs."""
