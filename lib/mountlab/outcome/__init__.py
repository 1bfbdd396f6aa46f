"""What became of one trial: a measurement, or why there is none and what follows. Pure."""
