"""One file per verb: the only place that knows the order of the stages."""
