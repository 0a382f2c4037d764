"""The WSGI application that Granian serves; refuses to load on unsound servers."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

from config.checks import require_sound_servers  # noqa: E402  the apps must be loaded first

require_sound_servers()
