from . import plots as plots
from .jupyter import batches as batches
from .jupyter import fitness as fitness
from .jupyter import forecast as forecast
from .jupyter import history as history
from .jupyter import ranks as ranks
from .jupyter import simulate as simulate
from .jupyter.api import load_result as load_result
from .jupyter.api import load_sweep as load_sweep
from .jupyter.api import report_link as report_link
from .jupyter.api import run as run
from .jupyter.api import show_plan as show_plan
from .jupyter.api import sweep_from_notebook as sweep_from_notebook
from .jupyter.comparing import compare_runs as compare_runs
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
