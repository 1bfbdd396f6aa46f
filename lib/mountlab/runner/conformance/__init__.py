"""The conformance suites of tools, file systems, checks and plots: `mountlab conform` runs them for a plug-in.

A plug-in gives its examples as a list, by an entry point in the group `mountlab.examples`.
"""

from mountlab.runner.conformance.checks import CheckExample
from mountlab.runner.conformance.filesystems import FilesystemExample
from mountlab.runner.conformance.plots import PlotExample
from mountlab.runner.conformance.tools import ToolExample

__all__ = ["CheckExample", "FilesystemExample", "PlotExample", "ToolExample"]
