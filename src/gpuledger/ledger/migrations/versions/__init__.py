"""One file per step, numbered; none rewrites a row."""
