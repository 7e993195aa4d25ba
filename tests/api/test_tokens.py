"""Tokens over the API: shown once, listed without the secret, ended at once."""

from pathlib import Path

from tests.api.running import problem, running

V1 = "/api/v1"


def test_a_token_is_made_listed_and_revoked(tmp_path: Path) -> None:
    with running(tmp_path) as (_, client):
        asked = {"name": "boss", "scopes": ["admin"]}
        made = client.post(f"{V1}/tokens", json=asked)
        assert made.status_code == 201
        boss = {"Authorization": f"Bearer {made.json()['token']}"}
        # From the first one on, every caller needs one.
        problem(client.get(f"{V1}/tokens"), 401, "unauthorized")
        problem(client.post(f"{V1}/tokens", json=asked, headers=boss), 422, "invalid-value")
        limited = {"name": "feed", "scopes": ["sensor:write"], "pipelines": ["gold"], "owners": ["etl"]}
        feed = client.post(f"{V1}/tokens", json=limited, headers=boss).json()
        assert (feed["known"]["pipelines"], feed["known"]["owners"]) == (["gold"], ["etl"])
        listed = client.get(f"{V1}/tokens", headers=boss)
        assert [one["name"] for one in listed.json()["items"]] == ["boss", "feed"]
        assert feed["token"] not in listed.text
        ended = client.delete(f"{V1}/tokens/feed", headers=boss)
        assert ended.json()["revokedAt"] is not None
        problem(client.delete(f"{V1}/tokens/nobody", headers=boss), 404, "not-found")
        writing = {"Authorization": f"Bearer {feed['token']}"}
        problem(client.put(f"{V1}/pipelines/gold/sensors/x", json={}, headers=writing), 401, "unauthorized")


def test_a_token_is_rotated_and_its_sessions_end_without_a_grace(tmp_path: Path) -> None:
    with running(tmp_path) as (service, client):
        made = client.post(f"{V1}/tokens", json={"name": "boss", "scopes": ["admin"]}).json()
        boss = {"Authorization": f"Bearer {made['token']}"}
        feed = client.post(f"{V1}/tokens", json={"name": "a feed", "scopes": ["read"]}, headers=boss).json()
        turned = client.post(f"{V1}/tokens/a feed:rotate", json={"expires": "30d"}, headers=boss).json()
        assert turned["known"]["expiresAt"] < feed["known"]["expiresAt"]

        def works(text: str) -> bool:
            return client.get(f"{V1}/pipelines", headers={"Authorization": f"Bearer {text}"}).is_success

        assert works(feed["token"])
        assert works(turned["token"])
        session = service.sessions.begin(service.tokens.verify(turned["token"]))  # type: ignore[arg-type]
        last = client.post(f"{V1}/tokens/a feed:rotate", json={"grace": "0s"}, headers=boss).json()
        assert [works(one["token"]) for one in (feed, turned, last)] == [False, False, True]
        assert service.sessions.find(session) is None
        problem(client.post(f"{V1}/tokens/nobody:rotate", json={}, headers=boss), 404, "not-found")
        problem(client.post(f"{V1}/tokens/boss:turn", json={}, headers=boss), 404, "not-found")
        problem(client.post(f"{V1}/tokens/boss:rotate", json={"expires": "soon"}, headers=boss), 422, "invalid-value")
        client.delete(f"{V1}/tokens/a feed", headers=boss)
        problem(client.post(f"{V1}/tokens/a feed:rotate", json={}, headers=boss), 422, "invalid-value")


def test_hazards_are_counted_from_what_is_stored(tmp_path: Path) -> None:
    from tests.api.running import pipeline

    with running(tmp_path) as (_, client):
        for name in ("a", "b", "c"):
            client.put(f"{V1}/pipelines/{name}", json=pipeline(name))
        first = client.get(f"{V1}/hazards", params={"limit": 2}).json()
        assert [one["pipeline"] for one in first["items"]] == ["a", "b"]
        assert first["next"] == "b"
        assert sum(first["counts"].values()) == sum(len(one["hazards"]) for one in first["items"])
        last = client.get(f"{V1}/hazards", params={"cursor": "b"}).json()
        assert ([one["pipeline"] for one in last["items"]], last["next"]) == (["c"], None)
        only = client.get(f"{V1}/hazards", params={"pipeline": "b"}).json()
        assert [one["pipeline"] for one in only["items"]] == ["b"]
        problem(client.get(f"{V1}/hazards", params={"pipeline": "zzz"}), 404, "unknown-pipeline")


def test_the_owners_token_is_not_rotated_without_its_file(tmp_path: Path) -> None:
    with running(tmp_path) as (service, client):
        owner = service.tokens.create_local()
        refused = problem(client.post(f"{V1}/tokens/local:rotate", json={}), 422, "invalid-value")
        assert "commands read it from the file beside the store" in refused["detail"]
        assert service.tokens.verify(owner) is not None
