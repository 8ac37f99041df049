"""6 TELL: values in, text out."""
