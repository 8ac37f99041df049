"""1b WATCH: turns what sources see, look after look, into rows of evidence. Pure; remembers one look."""
