"""Numbers and nothing else: exact arithmetic, and what the rounding of cited numbers leaves open."""
