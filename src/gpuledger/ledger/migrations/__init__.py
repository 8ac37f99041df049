"""The steps from an empty file to today's tables. Each is frozen once released: it spells its own DDL out."""
