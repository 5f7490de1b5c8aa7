"""Claims as questions to z3: real, integer and linear arithmetic, and vectors of every length by their Gram matrix."""
