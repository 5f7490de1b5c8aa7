"""Exact algebra: one normal form, proofs for every size, counterexamples, intervals."""
