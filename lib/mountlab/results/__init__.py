"""Run directories: how they are written, checked and read. The only home of paths."""
