"""Where the items of a batch are done: the workers of a dask.distributed scheduler, of this process or by address.

A machine under test belongs to one task at a time, also of several batches on one scheduler: the task holds a lease of
a semaphore of the scheduler, which its worker's own event loop renews. When the worker is dead, it ends: after
the lease's time (`distributed.scheduler.locks.lease-timeout`) the next one has it; what the dead one left on the box
is still refused by the lock on the box itself (lock.py). A task does not wait for a lease: it gives its thread back.

The scheduler gives a task whose worker is lost to another one; that is safe, because an item goes on with its run.
"""

from __future__ import annotations

import logging
import queue
import socket
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import dask
from distributed import Client, Event, Future, LocalCluster, Semaphore, get_worker
from distributed.scheduler import KilledWorker

from mountlab.batch.queue import HERE
from mountlab.core.errors import InputError, SchedulerError

CONNECT_S = 15.0
LOOK_S = 10.0
"""How long workers are waited for to say what they see, before the first item."""
LEASE_TRY_S = 0.2
ASK_S = 1.0
"""How often a task asks whether it is to stop."""
_LOOPBACK = "127.0.0.1:0"

StopRequested = Callable[[], bool]
Work = Callable[[StopRequested], Any]
"""What a worker is to do. Its argument tells whether to stop; it calls that about each second, and ends soon if so."""


# ── what comes back ──────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Taken:
    """Another task of the scheduler has the machine, of this batch or of another."""


@dataclass(frozen=True)
class Unfit:
    """The worker does not see what it is to work on."""

    worker: str
    why: str


@dataclass(frozen=True)
class Broken:
    """It did not come to an answer: what was raised, or the worker died each time."""

    error: str
    why: str


@dataclass(frozen=True)
class WorkerStatus:
    """The status that a worker reports before it is given anything."""

    host: str
    why: str
    """Why it is not fit; '' of one that is."""


# ── on a worker ──────────────────────────────────────────────────────────────────────────────────────────────────────


def report_status(unfit: Callable[[], str]) -> WorkerStatus:
    """Return which machine this worker is on, and why it is not fit."""
    return WorkerStatus(socket.gethostname(), unfit())


def perform(work: Work, unfit: Callable[[], str], machines: Sequence[str], stop: str) -> Any:
    """Do something on machines, each of which it holds alone meanwhile."""
    worker = get_worker()
    if why := unfit():
        return Unfit(worker.address, why)
    with ExitStack() as stack:
        free = all(stack.enter_context(_lease(machine)) for machine in machines)
        return work(_StopRequest(worker, str(worker.get_current_task()), stop)) if free else Taken()


@contextmanager
def _lease(machine: str) -> Iterator[bool]:
    """Whether the machine is ours until the end."""
    name = f"{machine} {socket.gethostname()}" if machine == HERE else machine
    semaphore = Semaphore(max_leases=1, name=f"mountlab-box {name}")
    free = bool(semaphore.acquire(timeout=LEASE_TRY_S))
    try:
        yield free
    finally:
        if free:
            semaphore.release()


class _StopRequest:
    """Returns whether a task is to stop: it was asked to, or its client is gone, or its scheduler."""

    def __init__(self, worker: Any, key: str, stop: str) -> None:
        self._worker, self._key, self._event = worker, key, Event(stop)
        self._next, self._answer = 0.0, False

    def __call__(self) -> bool:
        if not self._answer and time.monotonic() >= self._next:
            self._next = time.monotonic() + ASK_S
            task = self._worker.state.tasks.get(self._key)
            try:
                self._answer = task is None or task.state == "cancelled" or bool(self._event.is_set())
            except (OSError, RuntimeError, ValueError):  # no scheduler any more, or a worker that is closing
                self._answer = True
        return self._answer


# ── here ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _Given:
    """A task that was given out."""

    work: Work
    machines: tuple[str, ...]
    future: Future[Any]
    only: tuple[str, ...] = ()
    """The workers that may do it; none: any."""


@dataclass
class Cluster:
    """Gives work to workers. For one thread."""

    client: Client
    unfit: Callable[[], str]
    here: bool
    """Whether its workers are threads of this process, which see what we see."""
    stop_name: str = field(default_factory=lambda: f"mountlab-stop-{uuid.uuid4().hex}")
    statuses: dict[str, WorkerStatus] = field(default_factory=dict)
    """Worker to its status; workers without an answer yet are missing."""
    _given: dict[str, _Given] = field(default_factory=dict)
    _looks: dict[str, Future[Any]] = field(default_factory=dict)
    _present: set[str] = field(default_factory=set)
    _ended: queue.SimpleQueue[tuple[str, Future[Any]]] = field(default_factory=queue.SimpleQueue)

    @property
    def workers(self) -> Mapping[str, object]:
        """The workers that the scheduler knows, by address."""
        workers: Mapping[str, object] = self.client.scheduler_info(n_workers=-1)["workers"]
        return workers

    def look_around(self, wait_s: float = LOOK_S) -> dict[str, WorkerStatus]:
        """Return the statuses of the present workers; one that does not answer in time is left out."""
        until = time.monotonic() + wait_s
        self._ask_newcomers()
        while self._looks and time.monotonic() < until:
            time.sleep(0.02)
            self._hear()
        return self.statuses

    def _ask_newcomers(self) -> None:
        if self.here:
            return
        for address in set(self.workers) - set(self.statuses) - set(self._looks):
            key = f"mountlab-look-{uuid.uuid4().hex}"
            self._looks[address] = self.client.submit(
                report_status,
                self.unfit,
                key=key,
                workers=[address],
                pure=False,
                priority=10,
                allow_other_workers=False,
            )

    def _hear(self) -> None:
        for address, future in list(self._looks.items()):
            if future.done():
                del self._looks[address]
                if future.status == "finished":
                    self.statuses[address] = future.result()
                else:
                    self.statuses[address] = WorkerStatus("", f"it cannot run Mountlab: {future.exception()}")

    def gone(self) -> dict[str, float]:
        """Return the workers that have left since this was asked last: what they did the scheduler gives to others.

        The value is for how many seconds a worker had not answered when the scheduler gave it up: it may only be busy.
        It is 0 for a worker whose connection ended.
        """
        there = set(self.workers)
        left, self._present = sorted(self._present - there), there
        given_up: dict[str, float] = {}
        if left:
            with suppress(OSError):  # the scheduler is gone, too
                for _, event in self.client.get_events("scheduler"):
                    if event.get("action") == "worker-ttl-timed-out":
                        given_up |= dict.fromkeys(event["workers"], float(event["ttl"]))
        return {worker: given_up.get(worker, 0.0) for worker in left}

    def fit(self, machines: Sequence[str]) -> tuple[str, ...] | None:
        """Return the workers that may have a task; () for any, None where none of those that are there may."""
        if self.here:
            return ()
        self._hear()
        there = set(self.workers)
        answered = {worker: self.statuses[worker] for worker in there if worker in self.statuses}
        bad = {worker for worker, status in answered.items() if status.why}
        if HERE in machines:
            ours = socket.gethostname()
            return tuple(name for name, status in answered.items() if name not in bad and status.host == ours) or None
        return (tuple(there - bad) or None) if bad else ()

    def give(self, key: str, work: Work, *, machines: tuple[str, ...], only: tuple[str, ...] = ()) -> None:
        """Have something done, by one of these workers; what comes of it `ended` gives."""
        task = partial(perform, work, self.unfit, machines, self.stop_name)
        future = self.client.submit(
            task, key=f"mountlab-{key}-{uuid.uuid4().hex[:8]}", pure=False, workers=list(only) or None
        )
        self._given[key] = _Given(work, machines, future, only)
        future.add_done_callback(lambda done: self._ended.put((key, done)))

    def ended(self, wait_s: float) -> Iterator[tuple[str, Any]]:
        """Yield (task, result) as soon as there is one, for so long at most.

        Raises SchedulerError where the scheduler is gone.
        """
        self._ask_newcomers()
        try:
            key, future = self._ended.get(timeout=wait_s)
        except queue.Empty:
            if self.client.status != "running":
                raise _gone("the scheduler is gone", self.client) from None
            self._give_again()
            return
        given = self._given.get(key)
        if given is None or given.future is not future:  # one that was given out again
            return
        answer = _answer(future)
        del self._given[key]
        if isinstance(answer, Unfit):
            self.statuses[answer.worker] = WorkerStatus("", answer.why)
        yield key, answer

    def _give_again(self) -> None:
        """Give tasks again whose workers are all gone: they would wait for ever."""
        if not any(given.only for given in self._given.values()):
            return
        there = set(self.workers)
        for key, given in list(self._given.items()):
            if given.only and not there.intersection(given.only) and (only := self.fit(given.machines)) is not None:
                given.future.cancel()
                self.give(key, given.work, machines=given.machines, only=only)

    def stop(self) -> None:
        """Tell all tasks to stop. They end as soon as what they did on their boxes is undone."""
        Event(self.stop_name, client=self.client).set()


def _answer(future: Future[Any]) -> Any:
    if future.status == "finished":
        return future.result()
    if future.status == "cancelled":
        raise _gone("the scheduler is gone, and what it had given out with it", future.client)
    error = future.exception()
    if isinstance(error, KilledWorker):
        return Broken("KilledWorker", f"the worker died while it did this, and so did the next ones: {error}")
    return Broken(type(error).__name__, str(error))


def _gone(what: str, client: Any) -> SchedulerError:
    return SchedulerError(
        what, where=str(getattr(client.scheduler, "address", "")), got=f"the client is {client.status}"
    )


@contextmanager
def opened(address: str | None, unfit: Callable[[], str], *, threads: int) -> Iterator[Cluster]:
    """Open the cluster at an address, or one in this process. Raises SchedulerError, InputError."""
    with _own(threads) if address is None else _client(address) as client:
        yield Cluster(client, unfit, here=address is None)


@contextmanager
def _own(threads: int) -> Iterator[Client]:
    """A scheduler and one worker in this process. It serves no pages, listens on this machine only, and leaves no file.

    The worker lives as long as the scheduler: one that is busy or was suspended for minutes is never given up, since
    no process would start another.
    """
    settings: dict[str, object] = {"scheduler.http.routes": [], "worker.http.routes": [], "scheduler.worker-ttl": None}
    with (
        tempfile.TemporaryDirectory(prefix="mountlab-dask-") as scratch,
        dask.config.set({f"distributed.{key}": value for key, value in settings.items()}, temporary_directory=scratch),
        ExitStack() as stack,
    ):
        with warnings.catch_warnings():  # without a network dask cannot name this machine's way to the internet
            warnings.filterwarnings("ignore", "Couldn't detect a suitable IP address", RuntimeWarning)
            cluster = LocalCluster(
                n_workers=1,
                threads_per_worker=threads,
                processes=False,
                memory_limit=0,
                silence_logs=logging.CRITICAL,
                dashboard_address=_LOOPBACK,
                worker_dashboard_address=_LOOPBACK,
            )
        yield stack.enter_context(Client(stack.enter_context(cluster), set_as_default=False))


@contextmanager
def _client(address: str) -> Iterator[Client]:
    scheme, mark, _ = address.partition("://")
    if not mark or scheme not in ("tcp", "tls", "ws", "wss"):
        raise InputError(
            "not the address of a scheduler",
            where="--scheduler",
            got=repr(address),
            allowed="tcp://HOST:PORT, or tls://HOST:PORT, as `dask scheduler` prints it",
        )
    for name in ("distributed", "distributed.client"):  # what they would log is an error here, in words
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SchedulerError(
            "the scheduler cannot be reached",
            where=address,
            got=str(error),
            next_step="see that it runs (`dask scheduler`, with workers: `dask worker ADDRESS`) and that no firewall "
            "is between; without SCHEDULER this machine does all by itself",
        ) from error
    with client:
        yield client
