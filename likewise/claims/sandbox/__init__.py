"""Code of a claim in a process that can do little but compute: limits, no files, no network, no child, no thread."""
