"""How quantities grow: linear arithmetic, orders of growth, counts of programs."""
