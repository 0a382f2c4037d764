"""The API of who is asking: register, log in, renew, log out, ask for a new password."""

from http import HTTPStatus

from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import errors
from accounts.permissions import NotBlocked
from accounts.services import ask_for_new_password, log_in_by_code, log_in_by_password, register
from accounts.tokens import TokenPair, renew_tokens, revoke_tokens, tokens_for
from rest.answers import private
from rest.calls import ApiView
from rest.documents import documented
from rest.fields import TextField

# Longer than any name or password; a hash of megabytes would be an attack.
NAME_LENGTH_MAX = 150
PASSWORD_LENGTH_MAX = 128
TOKEN_LENGTH_MAX = 2_000


class RegistrationInput(serializers.Serializer[None]):
    """Body of a registration."""

    username = TextField(max_length=NAME_LENGTH_MAX)
    password = TextField(max_length=PASSWORD_LENGTH_MAX, trim_whitespace=False)
    email = serializers.EmailField(required=False, default="", help_text="Only for a forgotten password.")


class RegistrationOutput(serializers.Serializer[None]):
    """The new account."""

    id = serializers.IntegerField()
    username = serializers.CharField()


class CredentialsInput(serializers.Serializer[None]):
    """Body of a log-in."""

    username = TextField(max_length=NAME_LENGTH_MAX)
    password = TextField(max_length=PASSWORD_LENGTH_MAX, trim_whitespace=False)


class CodeInput(serializers.Serializer[None]):
    """Body of a log-in by a service outside."""

    code = TextField(max_length=512)


class RefreshInput(serializers.Serializer[None]):
    """A refresh token."""

    refresh = TextField(max_length=TOKEN_LENGTH_MAX)


class TokensOutput(serializers.Serializer[None]):
    """A pair of tokens."""

    access = serializers.CharField(help_text="Goes with each call: `Authorization: Bearer …`.")
    refresh = serializers.CharField(help_text="Gets the next pair, once.")
    expires_in = serializers.IntegerField(help_text="Seconds the access token lives.")


class PasswordResetInput(serializers.Serializer[None]):
    """Who has forgotten his password."""

    email = serializers.EmailField()


class OpenView(ApiView):
    """A call for those who are nobody yet."""

    authentication_classes = ()
    permission_classes = (AllowAny, NotBlocked)


class RegistrationView(OpenView):
    """``POST /accounts/``."""

    throttle_scope = "register"

    @documented(
        takes=RegistrationInput,
        answers={201: RegistrationOutput},
        raises=(errors.RegistrationRefused, errors.Blocked),
        auth=(),
        tag="account",
    )
    def post(self, request: Request) -> Response:
        """Make an account."""
        body = RegistrationInput(data=request.data)
        body.is_valid(raise_exception=True)
        user = register(**body.validated_data)
        return private({"id": user.pk, "username": user.get_username()}, status=HTTPStatus.CREATED)


class TokensView(OpenView):
    """``POST /tokens/``."""

    throttle_scope = "login"

    @documented(
        takes=CredentialsInput,
        answers={200: TokensOutput},
        raises=(errors.WrongCredentials, errors.LockedOut, errors.Blocked),
        auth=(),
        tag="account",
    )
    def post(self, request: Request) -> Response:
        """Log an app in by name and password."""
        body = CredentialsInput(data=request.data)
        body.is_valid(raise_exception=True)
        user = log_in_by_password(request=request._request, **body.validated_data)  # noqa: SLF001
        return private(_tokens_body(tokens_for(user)))


class ExternalTokensView(OpenView):
    """``POST /tokens/external/``."""

    throttle_scope = "login"

    @documented(
        takes=CodeInput,
        answers={200: TokensOutput},
        raises=(errors.WrongCredentials, errors.ExternalLoginOff, errors.Blocked),
        auth=(),
        tag="account",
    )
    def post(self, request: Request) -> Response:
        """Log an app in by a code of the log-in service this shop trusts."""
        body = CodeInput(data=request.data)
        body.is_valid(raise_exception=True)
        return private(_tokens_body(tokens_for(log_in_by_code(code=body.validated_data["code"]))))


class TokenRenewalView(OpenView):
    """``POST /tokens/refresh/``."""

    throttle_scope = "login"

    @documented(
        takes=RefreshInput,
        answers={200: TokensOutput},
        raises=(errors.TokenInvalid, errors.Blocked),
        auth=(),
        tag="account",
    )
    def post(self, request: Request) -> Response:
        """Get the next pair; the old refresh token is void from then on."""
        body = RefreshInput(data=request.data)
        body.is_valid(raise_exception=True)
        return private(_tokens_body(renew_tokens(refresh=body.validated_data["refresh"])))


class TokenRevocationView(OpenView):
    """``POST /tokens/revoke/``."""

    throttle_scope = "login"

    @documented(
        takes=RefreshInput, answers={204: None}, raises=(errors.TokenInvalid, errors.Blocked), auth=(), tag="account"
    )
    def post(self, request: Request) -> Response:
        """Log an app out: the refresh token is void."""
        body = RefreshInput(data=request.data)
        body.is_valid(raise_exception=True)
        revoke_tokens(refresh=body.validated_data["refresh"])
        return Response(status=HTTPStatus.NO_CONTENT, headers={"Cache-Control": "no-store"})


class PasswordResetView(OpenView):
    """``POST /password-resets/``."""

    throttle_scope = "password_reset"

    @documented(takes=PasswordResetInput, answers={202: None}, raises=(errors.Blocked,), auth=(), tag="account")
    def post(self, request: Request) -> Response:
        """Send a link by mail, if an account has this address; the answer is the same if none has."""
        body = PasswordResetInput(data=request.data)
        body.is_valid(raise_exception=True)
        ask_for_new_password(request=request._request, email=body.validated_data["email"])  # noqa: SLF001
        return Response(status=HTTPStatus.ACCEPTED, headers={"Cache-Control": "no-store"})


def _tokens_body(pair: TokenPair) -> dict[str, str | int]:
    return {"access": pair.access, "refresh": pair.refresh, "expires_in": pair.expires_in_seconds}
