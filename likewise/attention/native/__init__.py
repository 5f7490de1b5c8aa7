"""Linear attention compiled: one C++ source, optional and invisible. What it does not cover, torch's operators do."""
