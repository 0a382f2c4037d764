"""A private Redis Cluster, masters and replicas on free ports of this machine, or a master with Sentinels."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from redis import Redis
from redis.exceptions import RedisError

from benchmarks.servers import redis
from benchmarks.servers.account import Account, server_account
from benchmarks.servers.directory import data_directory, home_directory, locked
from benchmarks.servers.process import HOST, Server, ServersError, free_port
from benchmarks.servers.stack import Stack

SLOTS = 16_384
# How soon a dead master is noticed, in ms; production has 15,000 or 5,000.
NODE_TIMEOUT = 1_000
FORMING_SECONDS_MAX = 30


class RedisCluster:
    """Masters with equal shares of the slots, and replicas of each; in Server's way each can be killed or started."""

    def __init__(self, *, masters: Sequence[Server], replicas: Sequence[Server]) -> None:
        self.masters, self.replicas = list(masters), list(replicas)

    @property
    def nodes(self) -> list[Server]:
        """All servers, whatever they are at the moment."""
        return [*self.masters, *self.replicas]

    @property
    def url(self) -> str:
        """What STOCK_REDIS_URL is to be."""
        return "redis+cluster://" + ",".join(f"{HOST}:{node.port}" for node in self.nodes)

    def client(self, node: Server) -> Redis:
        """Return a client of one node."""
        return Redis(host=HOST, port=node.port, protocol=2, socket_timeout=5)

    def node_at(self, port: int) -> Server:
        """Return the node that listens on a port."""
        (found,) = (node for node in self.nodes if node.port == port)
        return found

    def owner(self, slot: int) -> Server:
        """Return the master of a slot, as the first node that answers sees it. Raises ``ServersError``."""
        for node in self.nodes:
            try:
                with self.client(node) as client:
                    for first, last, master, *_ in client.execute_command("CLUSTER SLOTS"):
                        if first <= slot <= last:
                            return self.node_at(master[1])
            except RedisError:
                continue
        raise ServersError(f"no node knows the master of slot {slot}")

    def serving(self) -> list[Server]:
        """Return the nodes that are masters with slots now."""
        return sorted({node.port: node for node, _, _ in self.shares()}.values(), key=lambda node: node.port)

    def shares(self) -> list[tuple[Server, int, int]]:
        """Return each range of slots with its master."""
        with self._any() as client:
            told = client.execute_command("CLUSTER SLOTS")  # type: ignore[no-untyped-call]
        return [(self.node_at(master[1]), first, last) for first, last, master, *_ in told]

    def move_slot(self, slot: int, *, source: Server, target: Server, between: Callable[[], None]) -> None:
        """Move a slot as ``redis-cli --cluster reshard`` does, key by key, with ``between`` after every step."""
        with self.client(source) as old, self.client(target) as new:
            between()
            new.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", _id_of(old))
            old.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", _id_of(new))
            between()
            while keys := old.execute_command("CLUSTER GETKEYSINSLOT", slot, 1):
                old.execute_command("MIGRATE", HOST, target.port, "", 0, 5_000, "KEYS", *keys)
                between()
            # The new one first: else nobody would serve the slot for a moment.
            for node in (target, *(node for node in self.serving() if node is not target)):
                with self.client(node) as client:
                    client.execute_command("CLUSTER SETSLOT", slot, "NODE", _id_of(new))
            between()
        self._until(lambda info: info["cluster_state"] == "ok")

    def restore(self, shares: Sequence[tuple[Server, int, int]]) -> None:
        """Give every slot that moved back to the node that had it."""
        now = {slot: node for node, first, last in self.shares() for slot in range(first, last + 1)}
        for node, first, last in shares:
            for slot in range(first, last + 1):
                if now[slot].port != node.port:
                    self.move_slot(slot, source=now[slot], target=node, between=lambda: None)

    def restart_empty(self, node: Server) -> None:
        """Let a node come back without its data, but as who it was."""
        node.kill()
        node.remove("appendonlydir")
        node.start()

    @contextmanager
    def _any(self) -> Iterator[Redis]:
        """Give a client of a node that answers. Raises ``ServersError``."""
        for node in self.nodes:
            with self.client(node) as client, suppress(RedisError):
                client.ping()
                yield client
                return
        raise ServersError("no node of the cluster answers")

    def form(self) -> None:
        """Introduce the nodes to each other and share the slots out; returns once all agree."""
        for number, master in enumerate(self.masters):
            with self.client(master) as client:
                first, end = number * SLOTS // len(self.masters), (number + 1) * SLOTS // len(self.masters)
                client.execute_command("CLUSTER ADDSLOTSRANGE", first, end - 1)
                client.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
        first_master, *others = self.nodes
        for node in others:
            with self.client(node) as client:
                client.execute_command("CLUSTER MEET", HOST, first_master.port, self._bus_port(first_master))
        self._until(lambda info: info["cluster_known_nodes"] == str(len(self.nodes)))
        for number, replica in enumerate(self.replicas):
            with self.client(self.masters[number % len(self.masters)]) as client:
                master_id = client.execute_command("CLUSTER MYID").decode()
            with self.client(replica) as client:
                client.execute_command("CLUSTER REPLICATE", master_id)
        self.await_whole()

    def await_whole(self) -> None:
        """Return once every node takes part: all slots served, every replica in step with a master."""
        self._until(lambda info: info["cluster_state"] == "ok" and info["cluster_slots_ok"] == str(SLOTS))
        deadline = time.monotonic() + FORMING_SECONDS_MAX
        while not all(self._is_in_step(node) for node in self.nodes):
            if time.monotonic() > deadline:
                raise ServersError("the replicas of the cluster did not get in step")
            time.sleep(0.05)

    def _bus_port(self, node: Server) -> int:
        with self.client(node) as client:
            return int(client.config_get("cluster-port")["cluster-port"])

    def _is_in_step(self, node: Server) -> bool:
        with self.client(node) as client:
            info: dict[str, Any] = client.info("replication")
            return bool(info["role"] == "master" or info["master_link_status"] == "up")

    def _until(self, is_so: Any) -> None:
        deadline = time.monotonic() + FORMING_SECONDS_MAX
        for node in self.nodes:
            with self.client(node) as client:
                while not is_so(client.execute_command("CLUSTER INFO")):
                    if time.monotonic() > deadline:
                        raise ServersError(f"the cluster did not form: {node.name} says otherwise")
                    time.sleep(0.05)


def _id_of(client: Redis) -> str:
    return str(client.execute_command("CLUSTER MYID").decode())  # type: ignore[no-untyped-call]


@contextmanager
def redis_cluster(
    *, directory: Path, masters: int, replicas_each: int, options: tuple[str, ...] = ()
) -> Iterator[RedisCluster]:
    """Run a cluster with its data under a directory, emptied first, and end it afterwards."""
    with ExitStack() as running:
        running.enter_context(locked(directory.absolute()))
        account = server_account()
        home = home_directory(directory=directory.absolute(), account=account)
        names = [f"node-{number}" for number in range(masters * (1 + replicas_each))]
        nodes = []
        for name in names:
            data = data_directory(home / name, account=account, is_fresh=True)
            node = Server(program=_program(data=data, account=account, options=options))
            running.callback(node.kill)
            node.start()  # One by one: a port is taken before the next is chosen.
            nodes.append(node)
        cluster = RedisCluster(masters=nodes[:masters], replicas=nodes[masters:])
        cluster.form()
        yield cluster


def _program(*, data: Path, account: Account, options: tuple[str, ...]) -> Any:
    ours = (
        *redis.STOCK,
        *("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT)),
        *("--cluster-port", str(free_port())),
        *("--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0"),
        *("--repl-diskless-sync-delay", "0", "--repl-backlog-size", "8mb"),
        *options,
    )
    return redis.program(data=data, account=account, stack=Stack(), options=ours)
