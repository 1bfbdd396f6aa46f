"""What notebooks import: load, run, browse, explore; and JupyterLab itself."""
