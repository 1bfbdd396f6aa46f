"""What differs between runs: of two, of many, across boxes."""
