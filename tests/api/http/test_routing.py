"""Which route an address leads to: the most exact one, whatever the order of declaration."""

import itertools

import pytest

from interlock.api.http import Route, delete, get, post, put
from interlock.api.http.routing import RouteError, Router
from interlock.api.problems import RequestError


def nothing() -> None:
    """A route's function; it is never called here."""


ROUTES: tuple[Route, ...] = (
    get("/runs/{schedule:str}/{date:str}")(nothing),
    post("/runs/{schedule:str}/{date:str}:cancel")(nothing),
    post("/runs/{schedule:str}/{date:str}:force:cancel")(nothing),
    post("/runs/{schedule:str}/{slot:str}")(nothing),
    post("/sensors:batch")(nothing),
    get("/pipelines")(nothing),
    get("/pipelines/latest")(nothing),
    get("/pipelines/{pipeline:str}")(nothing),
    delete("/pipelines/{pipeline:str}")(nothing),
    get("/pipelines/{pipeline:str}/sensors")(nothing),
    get("/pipelines/{pipeline:str}/sensors/{key:path}")(nothing),
    put("/pipelines/{pipeline:str}/sensors/{key:path}")(nothing),
    get("/pipelines/latest/why")(nothing),
)


@pytest.mark.parametrize(
    ("method", "path", "template", "values"),
    [
        ("POST", "/sensors:batch", "/sensors:batch", ()),
        ("POST", "/sensors%3Abatch", "/sensors:batch", ()),
        ("GET", "/pipelines", "/pipelines", ()),
        ("GET", "/pipelines/", "/pipelines", ()),
        ("GET", "//pipelines", "/pipelines", ()),
        # The segment itself before a parameter; what leads nowhere is given up for the parameter.
        ("GET", "/pipelines/latest", "/pipelines/latest", ()),
        ("GET", "/pipelines/latest/why", "/pipelines/latest/why", ()),
        ("GET", "/pipelines/latest/sensors", "/pipelines/{pipeline}/sensors", ("latest",)),
        ("GET", "/pipelines/gold", "/pipelines/{pipeline}", ("gold",)),
        ("GET", "/pipelines/a%2Fb", "/pipelines/{pipeline}", ("a/b",)),
        ("GET", "/pipelines/%FF", "/pipelines/{pipeline}", ("\ufffd",)),
        # An ending before none, the longest first; it needs something before it.
        ("POST", "/runs/cron/2026-03-03:cancel", "/runs/{schedule}/{date}:cancel", ("cron", "2026-03-03")),
        ("POST", "/runs/cron/2026-03-03%3Acancel", "/runs/{schedule}/{date}:cancel", ("cron", "2026-03-03")),
        ("POST", "/runs/cron/x:force:cancel", "/runs/{schedule}/{date}:force:cancel", ("cron", "x")),
        ("POST", "/runs/cron/2026-03-03:claim", "/runs/{schedule}/{slot}", ("cron", "2026-03-03:claim")),
        ("POST", "/runs/cron/:cancel", "/runs/{schedule}/{slot}", ("cron", ":cancel")),
        ("GET", "/runs/cron/2026-03-03", "/runs/{schedule}/{date}", ("cron", "2026-03-03")),
        # The rest of an address is kept as it was sent.
        ("GET", "/pipelines/gold/sensors", "/pipelines/{pipeline}/sensors", ("gold",)),
        ("GET", "/pipelines/gold/sensors/", "/pipelines/{pipeline}/sensors", ("gold",)),
        ("PUT", "/pipelines/gold/sensors/rows", "/pipelines/{pipeline}/sensors/{key}", ("gold", "rows")),
        ("PUT", "/pipelines/gold/sensors/a/b", "/pipelines/{pipeline}/sensors/{key}", ("gold", "a/b")),
        ("PUT", "/pipelines/gold/sensors/a%2Fb%25", "/pipelines/{pipeline}/sensors/{key}", ("gold", "a/b%")),
        ("PUT", "/pipelines/gold/sensors//lead", "/pipelines/{pipeline}/sensors/{key}", ("gold", "/lead")),
        ("PUT", "/pipelines/gold/sensors/trail/", "/pipelines/{pipeline}/sensors/{key}", ("gold", "trail/")),
        ("PUT", "/pipelines/gold/sensors//", "/pipelines/{pipeline}/sensors/{key}", ("gold", "/")),
        ("PUT", "/pipelines/sensors/sensors/x", "/pipelines/{pipeline}/sensors/{key}", ("sensors", "x")),
    ],
)
def test_the_most_exact_address_wins(method: str, path: str, template: str, values: tuple[str, ...]) -> None:
    for routes in (ROUTES, ROUTES[::-1]):
        found = Router(routes).find(path.encode())
        assert (found.route(method).template, found.values) == (template, values)


@pytest.mark.parametrize("path", ["/", "", "/nowhere", "/pipelines/gold/nowhere", "/Pipelines", "/sensors", "/runs/x"])
def test_what_is_nowhere_is_not_found(path: str) -> None:
    with pytest.raises(RequestError, match="nothing at this address") as refused:
        Router(ROUTES).find(path.encode())
    assert refused.value.status == 404


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/pipelines", "GET, OPTIONS"),
        ("HEAD", "/pipelines/gold", "DELETE, GET, OPTIONS"),
        # The address decides: a less exact one with this method is not asked.
        ("DELETE", "/pipelines/latest", "GET, OPTIONS"),
        ("GET", "/runs/cron/2026-03-03:cancel", "POST, OPTIONS"),
        ("POST", "/pipelines/gold/sensors/a", "GET, PUT, OPTIONS"),
    ],
)
def test_another_method_is_told_which_there_are(method: str, path: str, allowed: str) -> None:
    with pytest.raises(RequestError, match="other methods") as refused:
        Router(ROUTES).find(path.encode()).route(method)
    assert refused.value.status == 405
    assert refused.value.headers == {"Allow": allowed}


@pytest.mark.parametrize(
    ("one", "other"),
    list(
        itertools.combinations(
            [get("/a/{x:str}/b")(nothing), get("/a/{y:str}/b")(nothing), get("a/{z:str}/b/")(nothing)], 2
        )
    ),
)
def test_two_routes_at_one_address_are_an_error(one: Route, other: Route) -> None:
    with pytest.raises(RouteError, match=r"two routes have the same address and method: GET .*nothing.* and GET"):
        Router([one, other])


@pytest.mark.parametrize("path", ["/a/{x}", "/a/b{x:str}", "/a/{x:path}/b", "/a/{x:path}:verb", "/a/{x:int}"])
def test_an_address_that_means_nothing_is_an_error(path: str) -> None:
    with pytest.raises(RouteError, match="GET"):
        Router([get(path)(nothing)])
