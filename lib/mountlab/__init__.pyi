from . import plots as plots
from .jupyter.api import load_result as load_result
from .jupyter.api import load_sweep as load_sweep
from .jupyter.api import newest_beside as newest_beside
from .jupyter.api import newest_of_one_sweep as newest_of_one_sweep
from .jupyter.api import newest_over_boxes as newest_over_boxes
from .jupyter.api import report_link as report_link
from .jupyter.api import run as run
from .jupyter.api import show_plan as show_plan
from .jupyter.api import sweep_from_notebook as sweep_from_notebook
from .jupyter.pickers import browse as browse
from .jupyter.pickers import explore as explore
from .report import sections as sections
from .report.execute import write_report as write_report
from .results.exclusion import exclude as exclude
from .results.store import Run as Run
from .results.store import load_run as load_run
from .runner.extend import extend as extend
from .runner.workflow import resume as resume
from .stats import compare as compare
from .stats import estimate as estimate

__all__: list[str]
