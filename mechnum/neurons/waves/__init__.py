"""Neurons as sums of waves: fits, formulas, periods read and written, single frequencies."""
