"""Claims: statements about all of this, parsed, executed and answered with a verdict."""
