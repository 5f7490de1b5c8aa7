"""The service: what it answers, whom it refuses, what it writes down, and that no path from outside reaches a file."""

import base64
import io
import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy
import pytest
from PIL import Image

from likewise.gallery import Embedder, Gallery
from likewise.serving import HEADERS
from tests.gallery.people import people
from tests.web.running import OTHERS, Client, running

ROWS = people(40, 4)


def mean_colour(images: list[numpy.ndarray]) -> list[numpy.ndarray]:
    return [numpy.concatenate([image.mean((0, 1)), numpy.ones(10)]) for image in images]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("service")


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with Gallery.open(folder / "people.db", Embedder(mean_colour, "v1")) as gallery:
        for name, rows in list(ROWS.items())[:30]:
            gallery.enrol(name, rows[:3])
        strangers = numpy.concatenate([ROWS[f"person {n}"] for n in range(30, 40)])
        gallery.calibrate(ROWS, far=0.01, strangers=strangers, fpir=0.2)
        with running(gallery, folder) as port, closing(Client(port)) as opened:
            yield opened


def picture(shade: int, size: tuple[int, int] = (8, 8)) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", size, (shade, 40, 250 - shade)).save(file, "PNG")
    return file.getvalue()


def test_probes_are_identified_together_and_apart(client: Client) -> None:
    probes = numpy.concatenate([ROWS["person 3"][3:], ROWS["person 8"][3:], -ROWS["person 3"][3:]])
    status, found = client.vectors("/api/identify?top=2", probes)
    assert status == 200
    assert [each["identity"] for each in found["answers"]] == ["person 3", "person 8", None]
    assert found["answers"][0]["odds"].startswith("false accept at most about 1 in ")
    assert [len(each["candidates"]) for each in found["answers"]] == [2, 2, 2]
    status, one = client.vectors("/api/verify?identity=person%203", probes[:1])
    assert (status, one["same"]) == (200, True)


def test_an_identity_is_enrolled_seen_and_forgotten_and_this_is_noted(client: Client, folder: Path) -> None:
    rows = people(1, 2, seed=99)["person 0"]
    client.token = OTHERS["door"]
    assert client.vectors("/api/enrol?identity=Zo%C3%AB", rows) == (200, {"identities": 1, "templates": 2})
    assert client.vectors("/api/identify", rows[:1])[1]["answers"][0]["identity"] == "Zoë"
    assert "Zoë" in client.ask("GET", "/api/identities")[1]["identities"]
    status, found = client.ask("POST", "/api/forget?identity=Zo%C3%AB")
    assert (status, found["status"], found["templates"]) == (200, "erased", 2)
    assert client.ask("POST", "/api/forget?identity=Zo%C3%AB")[0] == 404
    client.token = Client(0).token
    log = (folder / "audit.jsonl").read_text().splitlines()
    facts = [{name: value for name, value in json.loads(line).items() if name != "time"} for line in log]
    assert {"client": "door", "action": "enrol", "identity": "Zoë", "templates": 2} in facts
    assert {"client": "door", "action": "forget", "identity": "Zoë", "templates": 2, "status": "erased"} in facts
    assert all(set(each) <= {"client", "action", "identity", "templates", "status"} for each in facts)
    assert (folder / "audit.jsonl").stat().st_mode & 0o777 == 0o600


def test_pictures_are_bounded_and_damaged_ones_are_refused(client: Client) -> None:
    assert client.ask("POST", "/api/identify", picture(7), "image/png")[0] == 200
    wide = io.BytesIO()
    Image.new("1", (6000, 5000)).save(wide, "PNG")
    status, found = client.ask("POST", "/api/identify", wide.getvalue(), "image/png")
    assert (status, found["detail"]) == (415, "30,000,000 pixels; at most 25,000,000 are decoded")
    assert client.ask("POST", "/api/identify", picture(7)[:-30], "image/png")[0] == 415
    assert client.ask("POST", "/api/identify", b"", "image/png")[0] == 415
    status, _ = client.ask("POST", "/api/enrol", b"x", "image/png", Content_Length="20000001")
    assert status == 413
    client.connection.close()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"vectors": []}', 422),
        (b'{"vectors": [[]]}', 422),
        (b'{"vectors": [[1, 2], [3]]}', 422),
        (b'{"vectors": [[1, 2]]}', 422),
        (b'{"vectors": [[NaN, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]]}', 422),
        (b'{"vectors": [[1e999, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]]}', 422),
        (b'{"vectors": [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]}', 422),
        (b'{"vectors": "/etc/passwd"}', 422),
        (b'["/etc/passwd"]', 422),
        (b'{"float32": "AACAPw==", "width": 1}', 422),
        (b'{"float32": "AACAPwAAgD8=", "width": 3}', 422),
        (b'{"float32": "not base64!", "width": 13}', 422),
        (b'{"float32": "", "width": 13}', 422),
        (b'{"float32": "AACAPw==", "width": 0}', 422),
        (b'{"vectors": [[1]], "float32": "AACAPw==", "width": 1}', 422),
        (b"{" * 100_000, 422),
        (b"\xff\xfe", 422),
    ],
)
def test_odd_vectors_are_refused(client: Client, body: bytes, status: int) -> None:
    for path in ("/api/identify", "/api/enrol", "/api/verify?identity=person%201"):
        found, answer = client.ask("POST", path, body)
        assert (found, type(answer["detail"])) == (status, str)


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        ("/api/forget", None, "query.identity: Field required"),
        ("/api/clusters/merge", None, "body: Field required"),
        ("/api/clusters/merge", b'{"templates": ["x"]}', "body.templates.0: Input should be a valid integer"),
        ("/api/clusters/merge", b"{", "body.1: JSON decode error"),
        ("/api/identify?top=0", b"{}", "query.top: Input should be greater than or equal to 1"),
    ],
)
def test_what_does_not_fit_the_description_is_said_in_a_line(
    client: Client, path: str, body: bytes | None, detail: str
) -> None:
    status, found = client.ask("POST", path, body)
    assert status == 422
    assert isinstance(found["detail"], str)
    assert found["detail"].startswith(detail)


def test_packed_vectors_are_answered_as_listed_ones_are(client: Client) -> None:
    probes = numpy.concatenate([ROWS["person 3"][3:], ROWS["person 8"][3:]])
    packed = {"float32": base64.b64encode(probes.astype("<f4").tobytes()).decode(), "width": probes.shape[1]}
    listed = client.vectors("/api/identify", probes)
    assert listed[0] == 200
    assert client.ask("POST", "/api/identify", json.dumps(packed).encode()) == listed
    many = {**packed, "float32": base64.b64encode(bytes(4 * 13 * 257)).decode()}
    status, found = client.ask("POST", "/api/identify", json.dumps(many).encode())
    assert (status, found["detail"]) == (422, "float32 must hold 1 to 256 vectors of 13 numbers; got 13364 bytes")


def test_every_response_has_the_headers_that_keep_browsers_safe(client: Client) -> None:
    seen = {}
    for path, name, value in (
        ("/api/gallery", "Accept", "*/*"),
        ("/", "Accept", "*/*"),
        ("/api/nothing", "Accept", "*/*"),
        ("/api/gallery", "Authorization", "Bearer wrong"),
        ("/api/gallery", "Host", "evil.example"),
        ("/api/gallery", "Origin", "https://evil.example"),
    ):
        status, found = client.ask("GET", path, None, "", **{name: value})
        seen[path, status] = type(found)
        sent = client.headers
        policy = sent["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert {name: sent[name] for name in HEADERS} == HEADERS
    assert seen.pop(("/", 200)) is str
    assert [status for _, status in seen] == [200, 404, 401, 421, 403]
    assert set(seen.values()) == {dict}  # problems are JSON, too


def test_only_this_host_its_pages_and_holders_of_a_token_are_answered(client: Client) -> None:
    here = f"127.0.0.1:{client.port}"
    assert client.ask("GET", "/api/gallery", Authorization="Bearer wrong")[0] == 401
    assert client.ask("GET", "/api/gallery", Authorization="")[0] == 401
    assert client.ask("GET", "/wrong/api/gallery", Authorization="")[0] == 401
    assert client.ask("GET", "/api/gallery", Host="evil.example")[0] == 421
    assert client.ask("GET", "/api/gallery", Origin="https://evil.example")[0] == 403
    inside = f"/{client.token}/api/gallery"
    assert client.ask("GET", inside, Authorization="")[0] == 200
    forget = f"/{client.token}/api/forget?identity=nobody"
    assert client.ask("POST", forget, Authorization="")[0] == 403
    assert client.ask("POST", forget, Authorization="", Origin=f"http://{here}")[0] == 404
    assert client.headers["X-Content-Type-Options"] == "nosniff"
    assert client.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_the_rate_is_limited_for_each_token(tmp_path: Path) -> None:
    with Gallery.open(tmp_path / "a.db", model="v1") as gallery, running(gallery, tmp_path, rate=0.01) as port:
        gallery.enrol("ann", [[1.0, 0.0]])
        one, two = Client(port), Client(port, OTHERS["door"])
        with closing(one), closing(two):
            assert [one.ask("GET", "/api/gallery")[0] for _ in range(3)] == [200, 429, 429]
            assert 50 < int(one.headers["Retry-After"]) <= 100
            assert two.ask("GET", "/api/gallery")[0] == 200


def test_clusters_are_merged_split_and_named(tmp_path: Path) -> None:
    rows = people(3, 4, spread=0.05)
    with (
        Gallery.open(tmp_path / "a.db", model="v1") as gallery,
        running(gallery, tmp_path) as port,
        closing(Client(port)) as ask,
    ):
        for each in rows.values():
            assert ask.vectors("/api/enrol", each) == (200, {"identities": 4, "templates": 4})
        assert ask.ask("GET", "/api/clusters")[0] == 422  # no threshold is known
        found = ask.ask("GET", "/api/clusters?threshold=0.6")[1]
        groups = [[each["template"] for each in group["templates"]] for group in found["groups"]]
        assert [len(group) for group in groups] == [4, 4, 4]

        def post(action: str, **facts: object) -> int:
            return ask.ask("POST", f"/api/clusters/{action}", json.dumps(facts).encode())[0]

        assert post("merge", templates=groups[0] + groups[1]) == 200
        assert post("split", templates=groups[2][:1]) == 200
        assert post("split", templates=groups[0][:1]) == 422  # it was merged for good
        assert post("name", templates=groups[0] + groups[1], identity="Ann") == 200
        assert post("name", templates=[10**9], identity="Ann") == 404
        found = ask.ask("GET", "/api/clusters?threshold=0.6")[1]
        assert [(len(each["templates"]), each["identities"][0]) for each in found["groups"][:1]] == [(8, "Ann")]
        assert [len(each["templates"]) for each in found["groups"]] == [8, 3, 1]


def test_no_path_from_outside_reaches_the_file_system(client: Client, folder: Path) -> None:
    """Whatever is sent as a name, a vector or a picture, the process opens no file of that name."""
    secret = folder / "secret.png"
    secret.write_bytes(picture(9))
    names = [str(secret), "../secret.png", "people.db", "file:///etc/passwd", "/etc/passwd", f"//{secret}"]
    opened: list[str] = []
    recording = [True]

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if recording[0] and event in ("open", "os.listdir", "os.scandir", "os.remove", "os.rename", "os.mkdir"):
            opened.append(str(arguments[0]))

    sys.addaudithook(hook)
    try:
        for name in names:
            quoted = "".join(f"%{byte:02X}" for byte in name.encode())
            for method, path in (
                ("POST", f"/api/enrol?identity={quoted}"),
                ("POST", f"/api/verify?identity={quoted}"),
                ("POST", f"/api/forget?identity={quoted}"),
                ("GET", f"/api/identities?after={quoted}"),
                ("GET", f"/{quoted}"),
                ("GET", f"/api/{name}"),
            ):
                for body, kind in (
                    (name.encode(), "image/png"),
                    (json.dumps({"vectors": [name]}).encode(), "application/json"),
                    (json.dumps({"vectors": name}).encode(), "application/json"),
                    (json.dumps({"vectors": [[1.0] * 13]}).encode(), "application/json"),
                ):
                    assert client.ask(method, path, body, kind)[0] < 500
    finally:
        recording[0] = False
    assert [path for path in opened if path.endswith("audit.jsonl")]  # the hook sees what is opened
    assert [path for path in opened if "secret" in path or "passwd" in path or ".." in path] == []


def test_the_api_describes_itself(client: Client) -> None:
    status, found = client.ask("GET", "/api/openapi.json")
    assert status == 200
    assert set(found["paths"]) == {
        *(f"/api/{name}" for name in ("gallery", "identities", "calibration", "identify", "verify", "enrol", "forget")),
        *(f"/api/clusters{name}" for name in ("", "/merge", "/split", "/name")),
    }
    assert client.ask("GET", "/api/calibration")[1]["verify"]["far"] == 0.01
    versions = client.ask("GET", "/api/gallery")[1]["versions"]
    assert [(each["name"], each["current"]) for each in versions] == [("v1", True)]
