"""What every connection to the stock Redis does first; imports nothing of ours, so that settings may name it."""

from typing import Any

from redis.exceptions import ResponseError


def learn_run_id(connection: Any) -> None:
    """Shake hands as usual, then remember the server's run id on the connection as ``run_id``.

    The scripts compare it with the gate's. A restarted server has another one and breaks its
    connections, so the first call after a restart is refused without a round trip of its own.
    """
    connection.on_connect()
    connection.send_command("INFO", "server")
    text = connection.read_response()
    lines = (text.decode() if isinstance(text, bytes) else text).splitlines()
    run_ids = [line.partition(":")[2] for line in lines if line.startswith("run_id:")]
    if not run_ids:
        raise ResponseError("the server does not tell its run id, so a restart could not be noticed")
    connection.run_id = run_ids[0]
