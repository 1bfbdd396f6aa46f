"""The part of a plan that is about clients: further boxes from which workloads are driven together.

The box of the sweep makes the file system and asks; each client sees the same file system, has a directory of its own
on it, and is reached by a unix socket that is carried over SSH (mountlab.runner.clients).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mountlab.core import run_ids
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import PlanError
from mountlab.core.held import Lease
from mountlab.core.model import ClientEndpoint, Filesystem, Place, Step, Sweep, Workload
from mountlab.core.seeds import derived
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.base import ANYTHING, NOT_MOUNTED
from mountlab.programs import TOOLS
from mountlab.sweep.beside import used_neighbours
from mountlab.sweep.run_directories import marked, open_run_step

LONGEST_SOCKET = 100
"""Bytes in the path of a unix socket; the kernel takes 107, and sshd appends some while it makes one."""


@dataclass(frozen=True, kw_only=True)
class PlannedClient:
    """One of the boxes from which workloads are driven together."""

    name: str
    lease: Lease
    user: str
    """The user who logs in there."""
    privileged: bool
    opening: Step | None
    """The step that makes the run's directories; None for the sweep's own box, which has them already."""

    @property
    def server(self) -> str:
        """The directory of the tool's server, which lives as long as a trial."""
        return f"{self.lease.output_dir}/s"


@dataclass(frozen=True, kw_only=True)
class ClientMount:
    """A file system brought to one client: how, and where it sees the directory for trials."""

    client: str
    steps: tuple[Step, ...]
    root: str


# --- what is done -----------------------------------------------------------------------------------------------------


def planned_client(name: str, facts: BoxFacts, box: str, main: Lease) -> PlannedClient:
    """Return a client of a run that holds `main` on its box, from the client's own facts."""
    if name == box:
        lease, step = main, None
    else:
        mount_root, output_root = facts.storage.roots
        run_id = run_ids.of_client(main.run_id, name)
        lease = Lease(run_id=run_id, owner=main.owner, mount_root=mount_root, output_root=output_root)
        step = open_run_step(lease)
    return PlannedClient(
        name=name, lease=lease, user=str(facts.rights.user), privileged=facts.rights.privileged, opening=step
    )


def client_mounts(clients: tuple[PlannedClient, ...], fs: Filesystem, place: Place) -> tuple[ClientMount, ...]:
    """Return how each client gets to see a file system; () for one that only its own box sees."""
    return (
        () if FAMILIES[fs.type].refuses_clients(fs) else tuple(_client_mount(client, fs, place) for client in clients)
    )


def _client_mount(client: PlannedClient, fs: Filesystem, place: Place) -> ClientMount:
    family, run = FAMILIES[fs.type], client.lease
    if client.opening is None:  # it sees what it has made itself
        return ClientMount(client=client.name, steps=(), root=family.root_of(fs, place))
    run_dir = f"{run.mount_root}/{run.run_id}"
    on_client = replace(place, run_id=run.run_id, run_dir=run_dir, mountpoint=f"{run_dir}/mnt/{fs.name}")
    steps = tuple(marked(step, run.run_id) for step in family.client_steps(fs, place, on_client))
    return ClientMount(client=client.name, steps=steps, root=family.client_root(fs, place, on_client))


def endpoints(
    workload: Workload, mounts: tuple[ClientMount, ...], root: str, output: str, seed: int
) -> tuple[ClientEndpoint, ...]:
    """Return the clients that drive a trial, each in a directory of its own below that of the trial. `root` is the
    directory for trials as the box sees it; `output` that of the trial's output, named by the trial, beside which the
    box has a directory with their sockets; `seed` is that of the block."""
    roots, trial_id = {mount.client: mount.root for mount in mounts}, output.rpartition("/")[2]
    return tuple(
        ClientEndpoint(
            client=name,
            socket=f"{output}.c/{name}",
            directory=f"{roots[name]}/{trial_id}/{name}",
            same_directory=f"{root}/{trial_id}/{name}",
            seed=derived(seed, "client", number),
        )
        for number, name in enumerate(workload.clients, start=1)
        if name in roots
    )


def driving_clients(sweep: Sweep) -> tuple[str, ...]:
    """Return the clients that some workload is driven from, each once; on others only neighbours run."""
    return tuple(dict.fromkeys(name for workload in sweep.workloads for name in workload.clients))


# --- whether it can be done -------------------------------------------------------------------------------------------


_ONLY_IN_PLACE = (
    "the tool watched works in a directory that stays as it is (type: in_place), and other tools make directories of "
    "their own, on any other type"
)


def refusal(fs: Filesystem, workload: Workload) -> str | None:
    """Return why a workload cannot run on a file system; None where it can."""
    family = FAMILIES[fs.type]
    kind = family.mounted_as(fs)
    if family.in_place != TOOLS[workload.tool].in_place:
        return _ONLY_IN_PLACE
    tool = TOOLS[workload.tool]
    by_tool = None if kind in (NOT_MOUNTED, ANYTHING) else tool.refuses(kind, workload)
    by_tool = family.refuses(fs, workload) or by_tool or tool.refuses_place(fs, workload)
    return by_tool or (family.refuses_clients(fs) if workload.clients else None)


def check_clients(sweep: Sweep, box: str, facts: BoxFacts) -> None:
    """Raise PlanError where several boxes cannot drive what the sweep asks of them."""
    for workload in sweep.workloads:
        if workload.clients:
            _check_shared(sweep, workload)
            for name in workload.clients:
                _check_client(sweep, workload, name, box, facts)
    _check_neighbours(sweep, box, facts)


def _check_neighbours(sweep: Sweep, box: str, facts: BoxFacts) -> None:
    """Raise PlanError where a neighbour cannot run on the client that it names."""
    for neighbour in used_neighbours(sweep):
        name, client = neighbour.name, neighbour.place.client
        if not client:
            continue
        where = f"neighbours.{name}.where.client"
        if client == box:
            raise PlanError(
                "this is the box of the sweep itself", where=where, got=client, allowed="another box, or where: same"
            )
        _check_any_shared(sweep, where, client, "no file system of the sweep can be seen by a client")
        own = _check_rights_of_client(client, box, where, facts)
        _check_sight(sweep, client, box, own)
        for program in TOOLS[neighbour.workload.tool].programs_for(neighbour.workload):
            if reason := own.programs.unfit(program):
                raise PlanError(
                    f"client {client} cannot run neighbour {name}",
                    where=where,
                    got=f"{program.name}: {reason}",
                    next_step=f"mountlab box prepare {client}",
                )


def _check_shared(sweep: Sweep, workload: Workload) -> None:
    where, names = f"workloads.{workload.name}.clients", ", ".join(workload.clients)
    _check_any_shared(sweep, where, names, "no file system of the sweep can be driven from several clients")


def _check_any_shared(sweep: Sweep, where: str, names: str, what: str) -> None:
    """Raise PlanError where a client can see none of the file systems."""
    reasons = [FAMILIES[fs.type].refuses_clients(fs) for fs in sweep.filesystems]
    if all(reasons):
        allowed = "; ".join(dict.fromkeys(filter(None, reasons)))
        raise PlanError(what, where=where, got=names, allowed=allowed)


def _check_client(sweep: Sweep, workload: Workload, name: str, box: str, facts: BoxFacts) -> None:
    """Raise PlanError for a client without rights, or with other programs than the box that asks: the versions of a
    protocol must agree, and figures of different programs are not one sample."""
    where = f"workloads.{workload.name}.clients: {name}"
    client = _check_rights_of_client(name, box, where, facts)
    _check_sight(sweep, name, box, client)
    for program in TOOLS[workload.tool].programs_for(workload):
        asks, serves = (
            str(machine.programs.version(program.name)) if program.name in machine.programs.installed else None
            for machine in (facts, client)
        )
        if asks != serves:
            raise PlanError(
                f"client {name} and the box that asks it must have the same {program.name}",
                where=where,
                got=f"{serves or 'none'} on {name}",
                allowed=f"{asks or 'none'}, as on {box}",
                next_step=f"install the same version on both (`mountlab box prepare {name}` installs what is missing)",
            )


def _check_rights_of_client(name: str, box: str, where: str, facts: BoxFacts) -> BoxFacts:
    """Return the facts of a client. Raises PlanError where it, or the box, has rights by a helper only."""
    client = facts.clients.get(name)
    if client is None:
        raise PlanError(f"nothing is known of client {name}", where=where, got="no facts of it")
    for machine, rights in ((box, facts.rights.level), (name, client.rights.level)):
        if rights == "helper":
            raise PlanError(
                "the helper of a box does not serve clients",
                where=where,
                got=f"box {machine}: become: helper",
                allowed="root, sudo without a password, or none (for directories)",
            )
    return client


def _check_sight(sweep: Sweep, name: str, box: str, facts: BoxFacts) -> None:
    """Raise PlanError for a client that cannot mount what it is to see."""
    where = f"box {name}"
    for fs in sweep.filesystems:
        family = FAMILIES[fs.type]
        if absent := facts.kernel.lacks(family.client_kernel_types):
            raise PlanError(f"the kernel of client {name} has no {absent[0]}", where=where, got=fs.type)
        missing = [program.name for program in family.client_programs if program.name not in facts.programs.installed]
        if missing:
            raise PlanError(
                f"client {name} lacks {', '.join(missing)}",
                where=where,
                got=fs.type,
                next_step="; ".join(program.hint for program in family.client_programs if program.name in missing),
            )
        if family.client_programs and not facts.rights.privileged:
            raise PlanError(f"client {name} does not let us mount {fs.name}", where=where, got="rights: none")
        if family.client_programs and fs.server is None and name != box:
            raise PlanError(
                f"client {name} has no address of the server",
                where=f"filesystems.{fs.name}.server",
                got="nothing",
                allowed=f"the address under which {name} reaches {box}",
            )


def check_sockets(trials: tuple[ClientEndpoint, ...], clients: tuple[PlannedClient, ...]) -> None:
    """Raise PlanError for a socket whose path the kernel would not take."""
    for path in (*(endpoint.socket for endpoint in trials), *(f"{client.server}/s" for client in clients)):
        if len(path.encode()) > LONGEST_SOCKET:
            raise PlanError(
                "the path of a client's socket would be too long",
                where="output_root of the box file",
                got=path,
                allowed=f"{LONGEST_SOCKET} bytes",
                next_step="a shorter output_root, name of the sweep, or name of the client",
            )
