"""Settings, all from the environment; the defaults are the safe ones for production.

Required: ``SECRET_KEY``, ``DATABASE_URL``, ``STOCK_REDIS_URL``, ``CACHE_REDIS_URL``.
"""

from datetime import timedelta
from email.utils import getaddresses
from pathlib import Path

import django_stubs_ext
import environ
from django.core.exceptions import ImproperlyConfigured

import metrics  # noqa: F401  decides where processes count, before the library is imported
from config.desk import UNFOLD as DESK
from config.logs import logging_settings
from config.redis_urls import broker_of, cache_of, is_rabbitmq, stock_of

django_stubs_ext.monkeypatch()

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()

SECRET_KEY = env.str("SECRET_KEY")
if not SECRET_KEY:
    raise ImproperlyConfigured("SECRET_KEY is empty: it signs sessions and tickets")
SECRET_KEY_FALLBACKS = env.list("SECRET_KEY_FALLBACKS", default=[])
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=[])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "config.apps.ConfigConfig",
    "seckill",
    "orders",
    "inventory",
    "accounts",
    "rest",
    "actions",
    "unfold.apps.BasicAppConfig",
    "config.apps.DeskConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "corsheaders",
    "csp",
    "axes",
    "rest_framework_simplejwt",
    "rest_framework_simplejwt.token_blacklist",
    "django_celery_beat",
]

MIDDLEWARE = [
    "config.middleware.request_ids",
    "config.middleware.for_machines",
    "config.request_lines.request_lines",
    "config.middleware.api_answers",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "corsheaders.middleware.CorsMiddleware",
    "config.session_middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
# Answers purchases and polls by ticket on the event loop, in front of Django; see config/lane.py.
FAST_LANE = env.bool("FAST_LANE", default=True)
# Threads of each web process: for Django, and as many for what the fast lane has to ask MySQL.
WEB_THREADS = env.int("WEB_THREADS", default=4)

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

_database = env.db("DATABASE_URL")
# The certificate of the authority that has signed the database's; the URL's ssl_mode says how much is asked for.
_authority = env.str("DATABASE_CA", default="")

# A lock wait of 4 s ends a queue behind a holder that stands still (SIGSTOP, a frozen machine). MariaDB also ends a
# transaction that idles for 20 s, and so frees its locks; MySQL, which reads the /*M! */ part as a comment, has no such
# limit: there it takes the 60 s after which either ends a session that says nothing, with its locks and its GET_LOCK.
DATABASES = {
    "default": {
        **_database,
        "CONN_MAX_AGE": env.int("CONN_MAX_AGE", default=60),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            **_database.get("OPTIONS", {}),
            **({"ssl": {"ca": _authority}} if _authority else {}),
            "charset": "utf8mb4",
            "isolation_level": "read committed",
            "connect_timeout": 3,
            "init_command": (
                "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES'), innodb_lock_wait_timeout = 4,"
                " wait_timeout = 60"
                " /*M!100301 , idle_transaction_timeout = 20 */"
            ),
        },
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# One server, Sentinels or, for the stock, a cluster: see config/redis_urls.py.
CACHES = {
    "default": {**cache_of(env.str("CACHE_REDIS_URL")), "KEY_PREFIX": "shop"},
    "stock": stock_of(env.str("STOCK_REDIS_URL"), connections=env.int("STOCK_REDIS_CONNECTIONS", default=32)),
}

# Durable mode, see docs/operations.md: the stock Redis syncs each write before it answers, which it is asked for at the
# start; and so many replicas have a purchase before its buyer is told, or he is asked to repeat.
DURABLE = env.bool("DURABLE", default=False)
DURABLE_REPLICAS = env.int("DURABLE_REPLICAS", default=0) if DURABLE else 0
DURABLE_WAIT_MS = env.int("DURABLE_WAIT_MS", default=200)

SESSION_ENGINE = "config.session_store"
SESSION_CACHE_ALIAS = "default"

# Axes looks on, and refuses who has guessed too often; the other one knows the passwords.
AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"

# By name and address together: by the name alone a rival could lock a buyer out at 19:59, by the address alone
# a whole city block behind one carrier's gateway.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
# An honest buyer who keeps trying is let in again after the first fifteen minutes.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_VERBOSE = False
AXES_CLIENT_IP_CALLABLE = "rest.addresses.client_address_text"
AXES_LOCKOUT_TEMPLATE = "registration/locked_out.html"

# How many proxies of the shop's own stand in front and append to X-Forwarded-For; 0: it is not looked at.
TRUSTED_PROXIES = env.int("TRUSTED_PROXIES", default=0)

# Calls of one account, or of one address where nobody is logged in; an address may be a whole city block.
THROTTLES = {
    "any": env.str("THROTTLE_ANY", default="300/10 seconds"),
    "ticket": env.str("THROTTLE_TICKET", default="30/10 seconds"),
    "public": env.str("THROTTLE_PUBLIC", default="2000/10 seconds"),
    "schema": env.str("THROTTLE_SCHEMA", default="30/minute"),
    "challenge_wait": env.str("THROTTLE_CHALLENGE_WAIT", default="60/10 minutes"),
    "login": env.str("THROTTLE_LOGIN", default="60/minute"),
    "register": env.str("THROTTLE_REGISTER", default="60/hour"),
    "password_reset": env.str("THROTTLE_PASSWORD_RESET", default="30/hour"),
    "password_reset_mail": env.str("THROTTLE_PASSWORD_RESET_MAIL", default="5/hour"),
}
# Calls that come with a ticket, per ticket and process.
THROTTLES_PER_SECOND = {
    "purchase": env.int("THROTTLE_PURCHASE", default=20),
    "poll": env.int("THROTTLE_POLL", default=20),
}

# Dotted path of a function from the code of a log-in service to an ``ExternalAccount`` or None; empty: there is none.
EXTERNAL_LOGIN = env.str("EXTERNAL_LOGIN", default="")

SIMPLE_JWT = {
    "ACCESS_TOKEN_LIFETIME": timedelta(minutes=15),
    "REFRESH_TOKEN_LIFETIME": timedelta(days=14),
    "ROTATE_REFRESH_TOKENS": True,
    "BLACKLIST_AFTER_ROTATION": True,
    # A new password voids the tokens of the old one.
    "CHECK_REVOKE_TOKEN": True,
    "AUDIENCE": "shop",
}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "rest_framework_simplejwt.authentication.JWTAuthentication",
        "rest.sessions.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_PARSER_CLASSES": ["rest.parsers.StrictJsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "EXCEPTION_HANDLER": "config.api.problem_response",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "DEFAULT_SCHEMA_CLASS": "config.schema.ProblemsSchema",
    # The schema says what a call takes; OPTIONS is left to CORS.
    "DEFAULT_METADATA_CLASS": None,
}

# Other origins whose pages may call the API, without cookies; none unless named.
CORS_ALLOWED_ORIGINS = env.list("CORS_ALLOWED_ORIGINS", default=[])
CORS_URLS_REGEX = r"^/api/"
CORS_ALLOW_METHODS = ["GET", "HEAD", "POST"]
CORS_ALLOW_HEADERS = ["accept", "authorization", "content-type", "if-none-match", "x-request-id"]
CORS_EXPOSE_HEADERS = ["etag", "retry-after", "x-request-id"]

SPECTACULAR_SETTINGS = {
    "TITLE": "Flash-sale shop",
    "DESCRIPTION": "Catalogue, tickets, purchases and orders of a shop that cannot oversell.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": "/api/v1/",
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "/api/v1/redoc",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "POSTPROCESSING_HOOKS": ["config.schema.without_enum_marks"],
    "APPEND_COMPONENTS": {
        "securitySchemes": {
            "ticket": {
                "type": "apiKey",
                "in": "header",
                "name": "Authorization",
                "description": "`Ticket` and the ticket itself; opens its own purchase and nothing else.",
            }
        }
    },
}

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
TIME_ZONE = env.str("TIME_ZONE", default="UTC")
USE_I18N = True
USE_TZ = True

# Prices are written with it; the shop has one currency.
CURRENCY_SIGN = env.str("CURRENCY_SIGN", default="¥")

STATIC_URL = "static/"
# The web process serves static files out of the packages; STATIC_ROOT is for a proxy that shall do it.
STATIC_ROOT = env.str("STATIC_ROOT", default=None)
WHITENOISE_USE_FINDERS = True

IS_HTTPS = env.bool("HTTPS", default=True)
SECURE_SSL_REDIRECT = IS_HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if IS_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = IS_HTTPS
SECURE_HSTS_PRELOAD = IS_HTTPS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if env.bool("TRUST_PROXY", default=False) else None
SESSION_COOKIE_SECURE = IS_HTTPS
CSRF_COOKIE_SECURE = IS_HTTPS
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# How the desk looks.
UNFOLD = DESK
# Everything from here, nothing inline; the desk is let a little more, see rest/desk.py.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "manifest-src": ["'self'"],
        "worker-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000

CELERY_BROKER_URL, _broker_options = broker_of(env.str("BROKER_URL", default=env.str("CACHE_REDIS_URL")))
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# On Redis no message is acknowledged. Acknowledging one on a connection that was lost meanwhile ends the worker with an
# AttributeError (kombu 5.7), and a message is only a wake-up call: the sweep replaces a lost one within a second.
CELERY_BROKER_TRANSPORT_OPTIONS = (
    _broker_options
    if is_rabbitmq(CELERY_BROKER_URL)
    else {"ack_emulation": False, "socket_connect_timeout": 2, "socket_keepalive": True, **_broker_options}
)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 120
CELERY_TASK_SOFT_TIME_LIMIT = 100
CELERY_TASK_DEFAULT_QUEUE = "sweep"
# Six queues, so that a hung webhook or payment provider, or an archive that rests most of its time, never delays a
# rebuild, nor a rebuild a sweep, nor a sweep a settlement.
CELERY_TASK_ROUTES = {
    "seckill.settle": {"queue": "settle"},
    "seckill.gather": {"queue": "settle"},
    "seckill.finish_transfer": {"queue": "settle"},
    "seckill.sweep": {"queue": "sweep"},
    "seckill.sample": {"queue": "sweep"},
    "seckill.return_closed": {"queue": "sweep"},
    "seckill.honour": {"queue": "sweep"},
    "orders.expire": {"queue": "sweep"},
    "seckill.follow_up": {"queue": "sweep"},
    "orders.ask_due": {"queue": "sweep"},
    "orders.ask_one": {"queue": "money"},
    "orders.refund_due": {"queue": "sweep"},
    "orders.refund_one": {"queue": "money"},
    "orders.deliver_sandbox": {"queue": "money"},
    "seckill.rebuild": {"queue": "slow"},
    "seckill.preheat_due": {"queue": "slow"},
    "seckill.reconcile": {"queue": "slow"},
    "seckill.reconcile_one": {"queue": "slow"},
    "seckill.reconcile_full": {"queue": "slow"},
    "seckill.deliver_alerts": {"queue": "alerts"},
    "seckill.archive_due": {"queue": "archive"},
    "accounts.forget_tokens": {"queue": "slow"},
    "accounts.mail_reset": {"queue": "alerts"},
}
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULER = "config.beat:LeasedScheduler"
CELERY_BEAT_MAX_LOOP_INTERVAL = 1
# Beat writes down what it has sent every so many tasks, about ten seconds, instead of every three minutes: that is how
# one sees that it lives.
CELERY_BEAT_SYNC_EVERY = 40
CELERY_TIMEZONE = TIME_ZONE

# True lets the one person of a small shop decide on his own requests; every entry says so then.
ONE_PERSON_SHOP = env.bool("ONE_PERSON_SHOP", default=False)

# Pretended payments, and items that answer every code on purpose: for those who build against the API.
SANDBOX = env.bool("SANDBOX", default=False)

# While this file is there, nothing new is accepted in any sale: for the hour in which nobody can log in.
STOP_FILE = env.str("STOP_FILE", default="")

SECKILL = {
    "eligibility": [
        *env.list("SECKILL_ELIGIBILITY", default=["seckill.eligibility.active_account"]),
        *(["seckill.sandbox.rules.members_first"] if SANDBOX else []),
    ],
    # A sale stays in Redis this long after its end: the tickets' ten minutes, and some for those who still look.
    "archive_delay_minutes": env.int("SECKILL_ARCHIVE_DELAY_MINUTES", default=15),
    "limit_key": env.str("SECKILL_LIMIT_KEY", default="seckill.eligibility.account_key"),
}

# Who is told of incidents besides the log: people by mail ("Name <address>, ..."), a webhook, functions by dotted path.
ADMINS = [person for person in getaddresses([env.str("ADMINS", default="")]) if person[1]]
SERVER_EMAIL = env.str("SERVER_EMAIL", default="seckill@localhost")
EMAIL_SUBJECT_PREFIX = "[seckill] "
EMAIL_TIMEOUT = 10
vars().update(env.email("EMAIL_URL", default="smtp://localhost:25"))
ALERT_HOOKS = env.list("ALERT_HOOKS", default=[])
ALERT_WEBHOOK_URL = env.str("ALERT_WEBHOOK_URL", default="")
ALERT_WEBHOOK_SECRET = env.str("ALERT_WEBHOOK_SECRET", default="")
if ALERT_WEBHOOK_URL and not ALERT_WEBHOOK_SECRET:
    raise ImproperlyConfigured("ALERT_WEBHOOK_SECRET is empty: nobody could tell a forged alert from a true one")

# Where browsers and payment providers reach the shop, without a slash at the end.
PUBLIC_URL = env.str("PUBLIC_URL", default="http://127.0.0.1:8000").rstrip("/")
# Where a provider sends the buyer afterwards.
PAYMENT_RETURN_PATH = env.str("PAYMENT_RETURN_PATH", default="/orders/{number}/")

# The sandbox provider takes no money and lets anybody "pay"; never on where orders are real.
SANDBOX_SECRET = env.str("SANDBOX_SECRET", default="")
SANDBOX_NOTIFY_URL = env.str("SANDBOX_NOTIFY_URL", default=f"{PUBLIC_URL}/api/v1/payments/sandbox/notify/")

# Payment providers, name to class (see orders.providers.Provider), the default one first: "alipay=shop.alipay.Alipay".
PAYMENT_PROVIDERS = {
    **env.dict("PAYMENT_PROVIDERS", default={}),
    **({"sandbox": "orders.providers.sandbox.provider.SandboxProvider"} if SANDBOX else {}),
}

# Who may read /metrics: a bearer token, or callers from some networks ("10.0.0.0/8"); by default nobody.
METRICS_TOKEN = env.str("METRICS_TOKEN", default="")
METRICS_ADDRESSES = env.list("METRICS_ADDRESSES", default=[])
# Where a worker of a host without a web process answers /metrics itself; 0: it does not.
METRICS_PORT = env.int("METRICS_PORT", default=0)
METRICS_HOST = env.str("METRICS_HOST", default="127.0.0.1")
# One purchase in so many is timed stage by stage; 0: none.
STAGE_SAMPLE_ONE_IN = env.int("STAGE_SAMPLE_ONE_IN", default=100)

# LOG_LEVELS="seckill.settlement=DEBUG,shop.requests=WARNING" for some of them.
LOGGING = logging_settings(
    is_for_people=DEBUG, level=env.str("LOG_LEVEL", default="INFO"), levels=env.dict("LOG_LEVELS", default={})
)
