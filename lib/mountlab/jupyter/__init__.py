"""What notebooks import: load, run, browse, explore; a module for each further question; and JupyterLab itself."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
