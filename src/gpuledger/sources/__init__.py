"""1 SEE: one file per source. read() touches the world, parse() is pure."""
