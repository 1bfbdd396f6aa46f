"""A plug-in of Mountlab: unpacking an archive of many files."""
