"""Programs of ours that `run(...)` may name without permission: small real code for statements about code."""
