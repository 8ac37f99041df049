"""4 ACCOUNT: who answers for it, and sums by what people ask. Pure."""
