"""Expectations: exactly where a formula serves, by draws with a bounded error where none does."""
