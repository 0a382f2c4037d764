"""The application that Granian serves: the fast lane on the event loop, Django in threads behind it.

Refuses to load on unsound servers.
"""

from config.wsgi import application as django_application

# Only now: they need the apps, which that has loaded.
from config.django_threads import in_threads  # isort: skip
from config.lane import with_fast_lane  # isort: skip
from config.timing import with_stage_times  # isort: skip

application = with_stage_times(with_fast_lane(in_threads(django_application)))
