"""The language: bounds, trees, claims, and the parser that reads them."""
