"""Who and where: what in the files of a run tells a machine, a network or a person, and stable names in its place.

Values that the run itself knows (host name, user, serial numbers, paths) are replaced wherever they stand; addresses,
ids and similar unlisted values are found by their form. Figures, versions and times are left alone.
"""
