"""The machine under test, over SSH: connect, survey, lock, keep it steady, clean up."""
