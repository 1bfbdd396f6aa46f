"""Who and where: what in the files of a run tells a machine, a network or a person, and stable names in its place.

Values that the run itself knows (host name, user, serial numbers, paths) are replaced wherever they stand; addresses,
ids and the like that nobody listed are found by their form. Figures, versions and times are left alone.
"""

from mountlab.publish.identities.known import Identity, control_identities, run_identities
from mountlab.publish.identities.pages import page_with, said_by_notebook, said_by_page
from mountlab.publish.identities.pseudonyms import Pseudonyms

__all__ = [
    "Identity", "Pseudonyms", "control_identities", "page_with", "run_identities", "said_by_notebook", "said_by_page",
]  # fmt: skip
