"""Studies of many motions: what varies, what runs, what is kept; on one core or a cluster.

study = lw.Study(lw.study.Rollouts(arm, q, duration=0.2), vary={"payload:hand": (0.0, 3.0)}, ...)
results = study.run("folder")
"""

from linkwise.front_door import open_front_door
from linkwise.study.calls import (
    Calls as Calls,
    Simulations as Simulations,
)
from linkwise.study.design import (
    Design as Design,
    optimize as optimize,
)
from linkwise.study.engine import (
    Progress as Progress,
)
from linkwise.study.kept import (
    Batch as Batch,
)
from linkwise.study.plan import (
    Plan as Plan,
)
from linkwise.study.rare_event import (
    RareEvent as RareEvent,
    rare_event as rare_event,
)
from linkwise.study.results import (
    Results as Results,
    load as load,
)
from linkwise.study.rollouts import (
    Rollouts as Rollouts,
)
from linkwise.study.sensitivity import (
    Sensitivity as Sensitivity,
    sensitivity as sensitivity,
)
from linkwise.study.statistics import (
    Band as Band,
    Estimate as Estimate,
    band as band,
    mean as mean,
    probability as probability,
    quantile as quantile,
)
from linkwise.study.study import (
    Study as Study,
)

open_front_door(globals())
