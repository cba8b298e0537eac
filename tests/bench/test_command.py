"""`tandem bench` against a small HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from serve_app.cli import main
from tests.rules.case import patched

QUICK = ("--warm-up", "0", "--window", "0.1", "--windows", "2")


class Handler(BaseHTTPRequestHandler):
    """Every third request is refused at /busy, all at /broken and after the first at /once; two runs of three items
    each are counted with each look at the statistics."""

    protocol_version = "HTTP/1.1"
    requests = looks = 0

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Handler.requests += 1
        if self.path == "/broken" or (self.path == "/once" and Handler.requests > 1):
            self.answer(500, {"detail": "the cause is in the log"})
        elif self.path == "/busy" and Handler.requests % 3 == 0:
            self.answer(429, {"code": "full"})
        else:
            self.answer(200, {"bytes": len(body), "tier": self.headers["X-Tier"]})

    def do_GET(self) -> None:
        if self.path != "/v2/models/stats":
            self.answer(404, {})
            return
        Handler.looks += 1
        count = 6 * Handler.looks
        spent = {"success": {"count": count}, "queue": {"count": count, "ns": 2_000_000 * count}}
        spent |= {"compute_infer": {"count": count, "ns": 5_000_000 * count}}
        model = {"name": "m", "inference_count": count, "execution_count": 2 * Handler.looks, "inference_stats": spent}
        self.answer(200, {"model_stats": [model, {"name": "idle", "inference_count": 7}]})

    def answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Handler.requests = Handler.looks = 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "body").write_bytes(b"content")
    return str(tmp_path / "body")


def bench(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments])


def test_figures_of_each_load_are_printed_and_progress_goes_to_stderr(url: str, file: str) -> None:
    result = bench("/route", "--url", url, "--file", file, "--clients", "2", "--rate", "50", *QUICK)
    assert result.exit_code == 0, result.output
    closed, opened = result.stdout.split("\nopen loop, 50 requests a second: ")
    assert closed.startswith("closed loop, 2 clients: ")
    for text in (closed, opened):
        assert "answers/s  (not steady: " in text
        assert " ms  p99 " in text
        assert "  m: " in text
        assert "average batch 3.00, queue 2.00 ms, compute 5.00 ms" in text
        assert "idle" not in text
        assert "this client took " in text
    assert f"POST {url}/route, 7 bytes" in result.stderr
    assert "window 2: " in result.stderr


def test_json_holds_the_same(url: str, file: str) -> None:
    result = bench("/route", "--url", url, "--file", file, "--tier", "bulk", "--json", *QUICK)
    (found,) = json.loads(result.stdout)
    assert (found["request"], found["request_bytes"]) == (f"POST {url}/route", 7)
    assert found["load"] == {"loop": "closed", "clients": 1}
    assert found["rate"] == pytest.approx(found["answered"] / found["seconds"])
    assert found["codes"] == {"200": found["answered"]}
    assert found["p50_ms"] <= found["p90_ms"] <= found["p99_ms"]
    assert found["models"]["m"]["average_batch"] == 3.0
    assert (found["models"]["m"]["queue_ms"], found["models"]["m"]["compute_ms"]) == (2.0, 5.0)
    assert (len(found["window_rates"]), found["stable"], found["unsent"]) == (2, False, 0)


def test_refusals_count_apart_with_their_codes(url: str, file: str) -> None:
    result = bench("/busy", "--url", url, "--file", file, "--json", *QUICK)
    (found,) = json.loads(result.stdout)
    assert found["refused"] == found["codes"]["429"]
    assert found["refused"] == pytest.approx(found["answered"] / 2, abs=2)
    assert found["refused_p99_ms"] is not None
    assert "refused  (200: " in bench("/busy", "--url", url, "--file", file, *QUICK).stdout


def test_a_service_that_refuses_the_first_request_is_not_measured(url: str, file: str) -> None:
    result = bench("/broken", "--url", url, "--file", file, *QUICK)
    assert result.exit_code == 1
    assert f"Error: POST {url}/broken is not answered: 500: the cause is in the log" in result.stderr
    assert Handler.requests == 1


def test_a_load_without_any_answer_ends_with_1_and_its_figures(url: str, file: str) -> None:
    result = bench("/once", "--url", url, "--file", file, *QUICK)
    assert result.exit_code == 1
    assert "0.0 answers/s" in result.stdout
    assert "p50 -" in result.stdout
    assert " failed  (500: " in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("/route",), "a route, such as /v1/verify, needs --file"),
        (("arcface", "--file", "x"), "a model, such as arcface, has none"),
        (("arcface", "--grpc", "--url", "grpc://host:1"), "--grpc is for a model, without --url"),
        (("arcface", "--shape", "image"), "'image' is not such as image=320,320,3"),
        (("arcface", "--shape", "image=a"), "'image=a' is not such as image=320,320,3"),
        (("arcface", "--url", "host:8000"), "'host:8000' is no URL; write http://HOST:PORT, https:// or grpc://"),
        (("/route", "--file", "x", "--url", "grpc://host:1"), "a route is measured over HTTP"),
    ],
)
def test_wrong_usage_ends_with_2(arguments: tuple[str, ...], says: str) -> None:
    result = bench(*arguments)
    assert (result.exit_code, says in " ".join(result.stderr.split())) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("exposed", "says"), [(False, "m is not exposed: write `exposed: true`"), (True, "no service at")]
)
def test_a_model_of_the_spec_has_to_be_exposed(
    exposed: bool, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_PROJECT", str(tmp_path))
    (tmp_path / "cluster").mkdir()
    spec = patched({"models": {"m": {"exposed": exposed}}})
    spec["service"]["port"] = 1024  # nobody's
    (tmp_path / "cluster/spec.yaml").write_text(yaml.safe_dump(spec))
    result = bench("m", *QUICK)
    assert (result.exit_code, says in result.stderr) == (1, True), result.stderr


def test_a_target_may_be_named_as_one_so_that_none_is_taken_for_a_command(url: str, file: str) -> None:
    result = bench("target", "/route", "--url", url, "--file", file, *QUICK)
    assert result.stdout.startswith("closed loop, 1 client: ")


def test_options_may_come_before_the_target(url: str, file: str) -> None:
    result = bench("--url", url, "--file", file, *QUICK, "/route")
    assert result.stdout.startswith("closed loop, 1 client: ")


def test_nothing_to_measure_is_wrong_usage() -> None:
    result = bench()
    assert (result.exit_code, "Missing argument 'TARGET'" in result.stderr) == (2, True)


def test_the_help_names_the_commands_and_what_may_be_left_out() -> None:
    shown = " ".join(bench("--help").stdout.split())
    assert "TARGET | COMMAND [ARGS]..." in shown
    assert "tandem bench target --help" in shown


def test_models_of_sequences_are_said_to_be_left_out() -> None:
    assert "not of sequences" in " ".join(bench("target", "--help").stdout.split())


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_no_service_is_said_so(scheme: str, file: str) -> None:
    result = bench("m", "--url", f"{scheme}://127.0.0.1:1")
    assert result.exit_code == 1
    assert "no service at " in result.stderr
    assert "start it with `tandem up`, or name it with --url" in result.stderr


def test_a_server_that_is_none_of_the_protocol_is_said_so(url: str) -> None:
    result = bench("m", "--url", url)
    assert result.exit_code == 1
    assert f"{url}/v2/models/m/config answered 404" in result.stderr
