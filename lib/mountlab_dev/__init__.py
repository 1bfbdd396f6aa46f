"""Programs for those who develop Mountlab: `python -m mountlab_dev`. The wheel does not contain them."""
