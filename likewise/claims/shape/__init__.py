"""Shapes of formulas, symbolic, under the conventions of rows and of columns."""
