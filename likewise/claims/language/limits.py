"""Bounds that are checked before anything is evaluated; what exceeds one is inconclusive, never slow."""

SOURCE = 4_096  # characters of one claim
DEPTH = 50  # of the tree
NODES = 2_000  # of the tree, after definitions are put in
DIGITS = 64  # of a number
EXPONENT = 64
BITS = 4_096  # of a number that a power may give
DEGREE = 12  # of a polynomial
MONOMIALS = 50_000
ELEMENTS = 10**7  # of a tensor, or of all draws of a sample
SIZE = 4_096  # the largest value a size may take
CLAIMS = 500  # of one file
DOCUMENT = 1_000_000  # characters of one file
