"""The WSGI application that Granian serves; refuses to load on unsound servers."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

django_application = get_wsgi_application()

from config.lane import with_fast_lane  # noqa: E402  the apps must be loaded first
from config.start import start_web  # noqa: E402  as well
from config.timing import with_stage_times  # noqa: E402  as well

start_web()
application = with_stage_times(with_fast_lane(django_application))
