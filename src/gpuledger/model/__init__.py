"""THE WORDS: frozen values that every other room speaks in. No input, no output, no clock."""
