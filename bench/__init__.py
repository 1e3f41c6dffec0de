"""Measures what the README claims; run by ``make bench``. Figures, never a pass or a fail."""
