"""From YAML to a sweep, and from a sweep to the plan of its trials."""
