"""Asking a Service from every node and its client Pod for minutes, whatever becomes of connections, agents and nodes meanwhile."""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from .experiments import api, watching
from .experiments.watching import Post, Series
from .fleet import Fleet, side_by_side
from .inventory import Inventory
from .model import watched
from .model.addresses import Socket
from .model.services import ClusterObjects, Pod
from .model.watched import Event, Held, Unwatched, Watch
from .observation import CouldNotSee, Trouble
from .parse.errors import ParseError
from .parse.watch_record import Record, parse_agents, parse_record
from .selection import Options, client_pods, select_nodes, select_services, speaks

LOOK_EVERY = 2.0  # seconds between two looks at a record, and at the API
PATIENCE = 60.0  # seconds after the end in which a record that cannot be fetched is asked for again
AGENTS = "/api/v1/pods?labelSelector=k8s-app%3Dcilium"


@dataclasses.dataclass(slots=True)
class Life:
    """One life of the asking program: when it was begun, by this machine's clock, and what was fetched of its record."""

    begun: float
    text: bytearray
    seen: float


def posts(objects: ClusterObjects, inventory: Inventory, options: Options, every: float) -> tuple[Post, ...]:
    """Who asks what: each node's host and its client Pod, every DNS and TCP port of the Services under test.

    Raises:
        SelectionError: something is named that the cluster does not have.
    """
    services = select_services(objects, options, inventory)
    clients = client_pods(objects, options, inventory, services)
    found = []
    for node in select_nodes(objects, options, inventory):
        places: list[tuple[str, Pod | None]] = [("host", None)]
        client = clients.get(node.name)
        if client is not None:
            places.append(("Pod", client))
        for place, pod in places:
            series = []
            for service in services:
                for vip in service.cluster_ips[:1]:
                    for port in service.ports:
                        kind = speaks(port, inventory)
                        target = Socket(vip, port.port)
                        subject = f"{place} on {node.name} → {port.id}"
                        if kind == "dns" and port.protocol == "UDP":
                            series.append(Series(subject, "udp", target, every))
                        elif kind == "dns":
                            series.append(Series(subject, "held", target, watching.HELD_EVERY))
                        elif kind == "tcp":
                            series.append(Series(subject, "connect", target, every))
            found.append(Post(node.name, pod.ips[0] if pod else None, tuple(series), watching.fresh_folder()))
    return tuple(found)


def watch(
    fleet: Fleet, client: Any, chosen: tuple[Post, ...], name: str, seconds: float, say: Callable[[str], None],
    enough: threading.Event | None = None,
) -> tuple[Watch, tuple[Trouble, ...]]:  # fmt: skip
    """Ask for so many seconds, fetch the records, and leave nothing behind.

    Args:
        fleet: the ways to the nodes.
        client: of the API, for the agents' restarts; when it does not answer, it is asked again.
        chosen: who asks what.
        name: the DNS name to ask for.
        seconds: for how long.
        say: told what goes on, a line each.
        enough: set by who wants it to end early; what was written until then is fetched.

    Returns:
        What was felt; and what could not be seen: a place that never began, a record that was not fetched to its end.
    """
    started = time.time()
    ended, enough = threading.Event(), enough or threading.Event()
    seen: list[tuple[float, Any]] = []
    looking = threading.Thread(target=_look_at_agents, args=(client, ended, seen), daemon=True)
    looking.start()
    try:
        jobs = {post.folder: _job(fleet, post, name, started + seconds, say, enough) for post in chosen}
        lives = side_by_side(jobs)
    finally:
        ended.set()
        troubles = tuple(_clean(fleet, chosen))
        looking.join()
    series: list[watched.Series] = []
    unwatched: list[Unwatched] = []
    unseen = list(troubles)
    for post in chosen:
        found, holes, trouble = _of_post(post, lives[post.folder], early=enough.is_set())
        series += found
        unwatched += holes
        unseen += [trouble] if trouble else []
    events = watched.restarts(seen, started)
    return Watch(started, time.time(), tuple(series), _once(events), tuple(unwatched)), tuple(unseen)


def _once(events: tuple[Event, ...]) -> tuple[Event, ...]:
    return tuple(dict.fromkeys(events))


def _job(
    fleet: Fleet, post: Post, name: str, until: float, say: Callable[[str], None], enough: threading.Event
) -> Callable[[], list[Life]]:
    return lambda: _follow(fleet, post, name, until, say, enough)


def _follow(
    fleet: Fleet, post: Post, name: str, until: float, say: Callable[[str], None], enough: threading.Event
) -> list[Life]:
    """Begin to ask, and fetch what is written; begin anew where the record is gone, as after a reboot."""
    lives: list[Life] = []
    said: str | None = ""  # neither a problem nor none: the beginning is said, too
    while time.time() < until + PATIENCE:
        last = enough.is_set()
        if last:
            until = min(until, time.time())  # what cannot be fetched is asked for a while longer, and not begun anew
        problem = _look(fleet, post, name, until, lives)
        if problem == "done" or (last and problem is None):
            break
        if problem != said:
            say(f"{post.node}: {problem}" if problem else f"{post.node}: asking {'from the Pod' if post.pod_ip else 'from the host'}")
            said = problem
        if not enough.wait(LOOK_EVERY):
            continue
        time.sleep(LOOK_EVERY / 4)  # the event is set: nothing else is left to wait for
    return lives


def _look(fleet: Fleet, post: Post, name: str, until: float, lives: list[Life]) -> str | None:
    """One look: None when all is well, "done" when the record is whole, else what is wrong."""
    if lives:
        answers = fleet.run_one(post.node, (watching.read(post, len(lives[-1].text)),), phase="watch", timeout=15)
        if isinstance(answers, Trouble):
            return _unreached(answers)
        read = answers["watch-read"]
        if read.status == 0:
            lives[-1].text += read.stdout
            lives[-1].seen = time.time()
            return "done" if b'\n["done", ' in lives[-1].text[-200:] else None
        if read.status != watching.NOT_THERE:
            return f"the record cannot be read: {read.error_text.strip() or read.status}"
    left = until - time.time()
    if left <= 1:
        return "done"
    answers = fleet.run_one(post.node, (watching.start(post, name, left),), phase="watch", timeout=20)
    if isinstance(answers, Trouble):
        return _unreached(answers)
    begun = answers["watch-start"]
    if begun.status == 0 or "File exists" in begun.error_text:
        lives.append(Life(time.time(), bytearray(), time.time()))
        return None
    return f"asking cannot begin: {begun.error_text.strip() or begun.status}"


def _unreached(trouble: Trouble) -> str:
    """A Trouble in a few words: the command that was tried is the watch's own, and long."""
    return f"no connection, trying again: {trouble.problem.partition(', in:')[0]}"


def _clean(fleet: Fleet, chosen: tuple[Post, ...]) -> list[Trouble]:
    by_node: Mapping[str, list[Post]] = {post.node: [each for each in chosen if each.node == post.node] for post in chosen}
    answers = fleet.run({node: (watching.stop(each),) for node, each in by_node.items()}, phase="watch", timeout=20)
    return [answer for answer in answers.values() if isinstance(answer, Trouble)]


def _look_at_agents(client: Any, ended: threading.Event, seen: list[tuple[float, Any]]) -> None:
    """Read the agents' Pods until the end; a time without an answer, such as a reboot of the API's node, has no reading."""
    while not ended.wait(LOOK_EVERY / 2):
        try:
            answer = api.get(client, "agents", AGENTS, timeout=5)
            items = json.loads(answer.stdout)["items"] if answer.status == 0 else []
            seen.append((answer.started, parse_agents(items)))
        except (CouldNotSee, ValueError, KeyError):
            continue


def _of_post(
    post: Post, lives: list[Life], *, early: bool
) -> tuple[list[watched.Series], list[Unwatched], Trouble | None]:
    place = f"{'Pod' if post.pod_ip else 'host'} on {post.node}"
    if not lives:
        return [], [], Trouble(node=post.node, problem=f"watch: nothing was asked from the {place}")
    try:
        records = [parse_record(life.text.decode("utf-8", "replace")) for life in lives]
    except ParseError as wrong:
        return [], [], Trouble(node=post.node, problem=f"watch: {wrong}")
    series = [
        watched.Series(
            each.subject, post.node,
            tuple(one for record in records for one in record.asked.get(number, ())),
            tuple(one for record in records for one in _held(record, number, record is records[-1])),
        )
        for number, each in enumerate(post.series)
    ]  # fmt: skip
    holes = [
        Unwatched(place, before.seen, after.begun, "the asking program was gone: the node was rebooted")
        for before, after in itertools.pairwise(lives)
    ]
    whole = records[-1].done or early
    trouble = None if whole else Trouble(node=post.node, problem=f"watch: the record of the {place} was not fetched to its end")
    return series, holes, trouble


def _held(record: Record, number: int, last: bool) -> tuple[Held, ...]:
    """The connections of one life; one that stood when the node went was ended by that."""
    found = record.held.get(number, ())
    if last:
        return found
    return tuple(dataclasses.replace(each, end="closed", error="its own node was rebooted") if each.end is None else each for each in found)
