"""What a benchmark tool is to Mountlab, and what several of them share. They themselves are in `programs`."""
