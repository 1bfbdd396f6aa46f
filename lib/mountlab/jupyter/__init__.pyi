from . import batches as batches
from . import fitness as fitness
from . import forecast as forecast
from . import history as history
from . import ranks as ranks
from . import simulate as simulate
