"""What a process does before its first piece of work: look at its servers, and say that it is there."""

from config.checks import require_sound_servers
from metrics.definitions import begin_process
from seckill.answer_counts import show_all


def start_web() -> None:
    """Begin a web process. Raises ``ImproperlyConfigured`` on servers that would lose or evict stock."""
    require_sound_servers()
    begin_process(role="web")
    show_all()
