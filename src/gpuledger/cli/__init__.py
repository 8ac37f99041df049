"""The door of the command line: parse, call one operation, render."""
