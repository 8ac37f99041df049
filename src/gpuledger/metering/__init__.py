"""3 MEASURE: evidence to contexts to hours to records. Pure."""
