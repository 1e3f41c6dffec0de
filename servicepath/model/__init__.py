"""Frozen facts and the questions one may ask of them; nothing here does I/O or imports beyond the standard library."""
