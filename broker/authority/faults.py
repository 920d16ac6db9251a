"""Why a token is refused: one stable message for each cause, none with anything of the token."""

from enum import StrEnum

from broker.domain.errors import TokenInvalidError


class Fault(StrEnum):
    """The causes, worded for the caller."""

    AUTHORIZATION = "send exactly one authorization value: Bearer, one space, a token"
    TENANT_SELECTOR = "send x-tenant at most once: 1-256 letters, digits and . _ : -"
    TOO_LARGE = "the token exceeds 16384 characters"
    MALFORMED = "the token is not a signed compact JWT"
    HEADER = "the token's header holds a member that is not accepted or is malformed"
    TYPE = "the token's typ is not JWT or at+jwt"
    ISSUER = "the token's issuer is not accepted here"
    ALGORITHM = "the token's algorithm is not accepted for its issuer"
    KEY = "the token's key is not known for its issuer or does not fit the algorithm"
    SIGNATURE = "the token's signature does not verify"
    SUBJECT = "the token's sub must be 1-256 printable characters"
    AUDIENCE = "the token is not for this audience"
    TIMES = "the token's exp, iat and nbf must be numbers, exp and iat present"
    EXPIRED = "the token has expired"
    NOT_YET = "the token is not valid yet"
    BOUNDS = "the token's project, run, tenant or purpose claim is malformed"
    RUN_WITHOUT_PROJECT = "the token is bound to a run but to no project"


def refusal(fault: Fault) -> TokenInvalidError:
    """Return the error of one cause. Not retryable."""
    return TokenInvalidError(fault.value)
