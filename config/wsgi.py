"""Django as a WSGI application: what ``config.asgi`` has behind its fast lane. Refuses to load on unsound servers."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

application = get_wsgi_application()

from config.start import start_web  # noqa: E402  the apps must be loaded first

start_web()
