from . import sections as sections
