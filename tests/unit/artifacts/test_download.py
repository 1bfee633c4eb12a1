"""Downloads from a real server that misbehaves."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from bad_server import (
    BadServer,
    chunked,
    chunked_cut,
    cut,
    endless,
    honest,
    redirect,
    silent,
    slow_headers,
    status,
    trickling,
    whole,
)
from certificates import own_certificate
from fetching import Heard, limits, md5, model, sha256

from benchwright.artifacts.cache import ArtifactCache
from benchwright.core.artifact import Artifact
from benchwright.core.errors import CannotFetch, CannotWrite

CONTENT = random.Random(1).randbytes(300_000)
OTHER = random.Random(2).randbytes(300_000)


def parts(cache: ArtifactCache) -> list[str]:
    return sorted(os.listdir(cache.folder / "parts"))


def test_a_file_is_fetched_once_and_keeps_its_name(cache: ArtifactCache, server: BadServer, heard: Heard) -> None:
    wanted = model(server.serve("/v1/squeeze.onnx", honest(CONTENT)), CONTENT)
    assert cache.known(wanted) is None
    path = cache.fetch(wanted, near=None, progress=heard)
    assert path.name == "model.onnx"
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o222 == 0
    assert cache.fetch(wanted, near=None) == cache.known(wanted) == path
    assert len(server.seen) == 1
    assert "downloaded 293 KiB" in str(heard)
    assert parts(cache) == []


@pytest.mark.parametrize("sums", [{"md5": md5(CONTENT)}, {"md5": md5(CONTENT).upper()}, {"sha256": sha256(CONTENT)}])
def test_either_sum_finds_what_the_other_fetched(cache: ArtifactCache, server: BadServer, sums: dict[str, str]) -> None:
    url = server.serve("/m", honest(CONTENT))
    both = model(url, CONTENT, md5=md5(CONTENT))
    path = cache.fetch(both, near=None)
    assert cache.fetch(model(url, **sums), near=None) == path
    assert len(server.seen) == 1


def test_both_sums_are_checked_if_both_are_given(cache: ArtifactCache, server: BadServer) -> None:
    url = server.serve("/m", honest(CONTENT))
    cache.fetch(model(url, CONTENT), near=None)
    with pytest.raises(
        CannotFetch, match=f"the md5 of .*/m is {md5(CONTENT)}, but the specification says {md5(OTHER)}"
    ):
        cache.fetch(model(url, CONTENT, md5=md5(OTHER)), near=None)
    with pytest.raises(CannotFetch, match="the sha256 of"):
        cache.fetch(model(url, OTHER, md5=md5(CONTENT)), near=None)


def test_a_corrupt_download_is_fetched_once_more(cache: ArtifactCache, server: BadServer, heard: Heard) -> None:
    wanted = model(server.serve("/m", whole(OTHER), honest(CONTENT)), CONTENT)
    assert cache.fetch(wanted, near=None, progress=heard).read_bytes() == CONTENT
    assert len(server.seen) == 2
    assert "its checksum is wrong; downloading it once more" in str(heard)


def test_a_file_that_stays_wrong_is_an_error_with_both_sums(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", whole(OTHER)), CONTENT)
    with pytest.raises(CannotFetch) as raised:
        cache.fetch(wanted, near=None)
    for part in ("model.onnx", server.serve("/m", whole(OTHER)), sha256(OTHER), sha256(CONTENT), "correct the sum"):
        assert part in str(raised.value)
    assert len(server.seen) == 2
    assert cache.known(wanted) is None
    assert parts(cache) == []


def test_a_truncated_download_is_continued(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", cut(CONTENT, 100_000), honest(CONTENT)), CONTENT)
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
    assert [(seen.range, seen.if_range) for seen in server.seen] == [(None, None), ("bytes=100000-", '"one"')]


def test_a_later_process_continues_what_an_earlier_one_got(
    cache: ArtifactCache, server: BadServer, tmp_path: Path
) -> None:
    wanted = model(server.serve("/m", cut(CONTENT, 100_000), status(503)), CONTENT)
    with pytest.raises(CannotFetch, match=r"503.*97.7 KiB are kept.*continued"):
        cache.fetch(wanted, near=None)
    server.serve("/m", honest(CONTENT))
    assert ArtifactCache(tmp_path / "cache").fetch(wanted, near=None).read_bytes() == CONTENT
    assert server.seen[-1].range == "bytes=100000-"


def test_a_server_that_ignores_ranges_starts_over(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", cut(CONTENT, 100_000), whole(CONTENT)), CONTENT)
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
    assert len(server.seen) == 2


def test_a_part_of_another_version_is_dropped(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", cut(OTHER, 100_000, etag='"old"'), honest(CONTENT, etag='"new"')), CONTENT)
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
    assert len(server.seen) == 2


def test_a_server_that_mixes_versions_is_noticed_by_the_etag(cache: ArtifactCache, server: BadServer) -> None:
    """Without a checksum nothing else would show it."""
    mixing = honest(CONTENT, etag='"new"', obeys_if_range=False)
    wanted = model(server.serve("/m", cut(OTHER, 100_000, etag='"old"'), mixing))
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT


def test_without_version_or_sum_a_part_is_not_continued(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", cut(OTHER, 100_000, etag=None), honest(CONTENT, etag=None)))
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
    assert server.seen[-1].range is None


def test_a_complete_part_needs_no_more_bytes(cache: ArtifactCache, server: BadServer) -> None:
    """A process was killed after the last byte, before the rename."""
    wanted = model(server.serve("/m", honest(CONTENT)), CONTENT)
    (cache.folder / "parts").mkdir(parents=True)
    (cache.folder / "parts" / f"{sha256(CONTENT)}.part").write_bytes(CONTENT)
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
    assert server.seen[-1].range == f"bytes={len(CONTENT)}-"


@pytest.mark.parametrize("left", [OTHER[:1000], CONTENT + b"more", bytes(1000)])
def test_a_damaged_part_does_not_damage_the_file(cache: ArtifactCache, server: BadServer, left: bytes) -> None:
    """After a power cut a part may hold zeros."""
    wanted = model(server.serve("/m", honest(CONTENT)), CONTENT)
    (cache.folder / "parts").mkdir(parents=True)
    (cache.folder / "parts" / f"{sha256(CONTENT)}.part").write_bytes(left)
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT


@pytest.mark.parametrize("code", [500, 502, 503, 504, 429])
def test_a_temporary_refusal_is_tried_again(cache: ArtifactCache, server: BadServer, code: int) -> None:
    wanted = model(server.serve("/m", status(code, Retry_After=1), status(code), honest(CONTENT)), CONTENT)
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
    assert len(server.seen) == 3


@pytest.mark.parametrize(("code", "remedy"), [(404, "check the location"), (403, "access was denied"), (401, "login")])
def test_a_final_refusal_is_not(cache: ArtifactCache, server: BadServer, code: int, remedy: str) -> None:
    with pytest.raises(CannotFetch, match=f"{code}.*{remedy}"):
        cache.fetch(model(server.serve("/m", status(code)), CONTENT), near=None)
    assert len(server.seen) == 1


def test_a_server_that_stays_down_is_given_up(cache: ArtifactCache, server: BadServer) -> None:
    with pytest.raises(CannotFetch, match=r"503 Service Unavailable \(4 attempts\); try again later"):
        cache.fetch(model(server.serve("/m", status(503)), CONTENT), near=None)
    assert len(server.seen) == 4


def test_nobody_listening_is_an_error_in_words(cache: ArtifactCache) -> None:
    with BadServer() as gone:
        url = gone.serve("/m", honest(CONTENT))
    with pytest.raises(CannotFetch, match="Connection refused"):
        cache.fetch(model(url, CONTENT), near=None)


def test_a_silent_server_is_given_up(server: BadServer, tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "cache", limits=limits(connect_s=0.2, attempts=2))
    with pytest.raises(CannotFetch, match=r"no answer in time \(2 attempts\)"):
        cache.fetch(model(server.serve("/m", silent), CONTENT), near=None)


def test_headers_that_never_end_are_given_up(server: BadServer, tmp_path: Path) -> None:
    """Even without a checksum, half of the headers are no empty file."""
    cache = ArtifactCache(tmp_path / "cache", limits=limits(connect_s=0.3, attempts=2))
    with pytest.raises(CannotFetch, match=r"no answer in time \(2 attempts\)"):
        cache.fetch(model(server.serve("/m", slow_headers)), near=None)


def test_a_trickle_counts_as_stalled(server: BadServer, tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "cache", limits=limits(stall_s=0.3, attempts=2))
    with pytest.raises(CannotFetch, match=r"it stalled: .* B/s for .*attempts; .* are kept"):
        cache.fetch(model(server.serve("/m", trickling(CONTENT)), CONTENT), near=None)


def test_a_slow_but_steady_download_is_left_alone(server: BadServer, tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "cache", limits=limits(stall_s=2.0))
    wanted = model(server.serve("/m", honest(CONTENT, pause_s=0.6)), CONTENT)
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
    assert len(server.seen) == 1


def test_an_endless_download_ends_at_the_limit(server: BadServer, tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "cache", limits=limits(max_bytes=1_000_000))
    with pytest.raises(
        CannotFetch, match=r"has more than the limit of 977 KiB; raise it with \$BENCHWRIGHT_MAX_DOWNLOAD"
    ):
        cache.fetch(model(server.serve("/m", endless), CONTENT), near=None)
    assert parts(cache) == []


def test_a_file_that_says_it_is_too_large_is_not_begun(server: BadServer, tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "cache", limits=limits(max_bytes=1000))
    with pytest.raises(CannotFetch, match="has 293 KiB, the limit is 1000 B"):
        cache.fetch(model(server.serve("/m", honest(CONTENT)), CONTENT), near=None)
    assert parts(cache) == []


def test_a_file_that_the_disk_has_no_room_for_is_not_begun(server: BadServer, tmp_path: Path) -> None:
    cache = ArtifactCache(tmp_path / "cache", limits=limits(keep_free_bytes=1 << 60))
    with pytest.raises(CannotFetch, match=r"no room on the disk of .* for the 293 KiB of .*cache clean"):
        cache.fetch(model(server.serve("/m", honest(CONTENT)), CONTENT), near=None)


def test_a_length_that_is_too_small_is_caught_by_the_sum(cache: ArtifactCache, server: BadServer) -> None:
    short = whole(CONTENT[:100_000])
    with pytest.raises(CannotFetch, match="the sha256 of"):
        cache.fetch(model(server.serve("/m", short), CONTENT), near=None)


def test_a_length_that_is_too_large_is_never_a_success(cache: ArtifactCache, server: BadServer) -> None:
    """Even without a checksum."""
    with pytest.raises(CannotFetch, match="it ended after 300,000 of 300,100 bytes"):
        cache.fetch(model(server.serve("/m", cut(CONTENT + bytes(100), len(CONTENT), etag=None))), near=None)


def test_chunks_are_put_together_and_a_cut_one_is_noticed(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", chunked_cut(OTHER), chunked(CONTENT)))
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT


def test_an_empty_file_is_a_file(cache: ArtifactCache, server: BadServer) -> None:
    wanted = model(server.serve("/m", honest(b"")), b"")
    assert cache.fetch(wanted, near=None).read_bytes() == b""


def test_redirects_are_followed_up_to_a_limit(cache: ArtifactCache, server: BadServer) -> None:
    server.serve("/b", redirect("/m"))
    server.serve("/m", honest(CONTENT))
    wanted = model(server.serve("/a", redirect("/b")), CONTENT)
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
    with pytest.raises(CannotFetch, match="more than 5 redirects"):
        cache.fetch(model(server.serve("/loop", redirect("/loop")), OTHER), near=None)


def test_a_redirect_to_another_host_asks_that_host(cache: ArtifactCache, server: BadServer) -> None:
    with BadServer() as other:
        target = other.serve("/m", cut(CONTENT, 1000), honest(CONTENT))
        wanted = model(server.serve("/m", redirect(target)), CONTENT)
        assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
        assert {seen.host for seen in other.seen} == {f"127.0.0.1:{other.port}"}
        assert other.seen[-1].range == "bytes=1000-"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return own_certificate(tmp_path_factory.mktemp("tls"))


def test_https_is_not_left_for_http(
    cache: ArtifactCache, server: BadServer, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    plain = server.serve("/m", honest(CONTENT))
    with BadServer(certificate) as safe:
        assert cache.fetch(model(safe.serve("/m", honest(OTHER)), OTHER), near=None).read_bytes() == OTHER
        with pytest.raises(CannotFetch, match="redirects from https to http"):
            cache.fetch(model(safe.serve("/r", redirect(plain)), CONTENT), near=None)
        up = model(server.serve("/up", redirect(safe.serve("/n", honest(CONTENT)))), CONTENT)
        assert cache.fetch(up, near=None).read_bytes() == CONTENT
    assert [seen.path for seen in server.seen] == ["/up"]


def test_a_certificate_nobody_vouches_for_is_refused(
    cache: ArtifactCache, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with (
        BadServer(certificate) as unknown,
        pytest.raises(CannotFetch, match=r"certificate is not trusted.*SSL_CERT_FILE"),
    ):
        cache.fetch(model(unknown.serve("/m", honest(CONTENT)), CONTENT), near=None)
    assert unknown.seen == []


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "http://user:secret@127.0.0.1/x"])
def test_a_redirect_to_anything_but_the_web_is_refused(cache: ArtifactCache, server: BadServer, target: str) -> None:
    with pytest.raises(CannotFetch, match=r"redirects to .*not followed") as raised:
        cache.fetch(model(server.serve("/m", redirect(target)), CONTENT), near=None)
    assert "secret" not in str(raised.value)


def test_a_compressed_answer_is_refused(cache: ArtifactCache, server: BadServer) -> None:
    with pytest.raises(CannotFetch, match=r"compressed \(gzip\)"):
        cache.fetch(model(server.serve("/m", whole(CONTENT, Content_Encoding="gzip")), CONTENT), near=None)


def test_without_a_sum_the_server_is_asked_whether_it_changed(
    cache: ArtifactCache, server: BadServer, heard: Heard
) -> None:
    wanted = model(server.serve("/m", honest(CONTENT)))
    path = cache.fetch(wanted, near=None, progress=heard)
    assert f"its sha256 is {sha256(CONTENT)}" in str(heard)
    assert cache.known(wanted) is None  # only the server can tell
    assert cache.fetch(wanted, near=None) == path == ArtifactCache(cache.folder, offline=True).known(wanted)
    assert [seen.if_none_match for seen in server.seen] == [None, '"one"']
    server.serve("/m", honest(OTHER, etag='"two"'))
    assert cache.fetch(wanted, near=None).read_bytes() == OTHER
    server.serve("/m", status(503))
    with pytest.raises(CannotFetch, match=r"503.*; use the copy fetched earlier with --offline"):
        cache.fetch(wanted, near=None)


def test_offline_uses_what_is_there_and_asks_nobody(server: BadServer, cache: ArtifactCache, tmp_path: Path) -> None:
    with_sum = model(server.serve("/m", honest(CONTENT)), CONTENT)
    without = model(server.serve("/n", honest(OTHER)))
    for each in (with_sum, without):
        cache.fetch(each, near=None)
    asked = len(server.seen)
    offline = ArtifactCache(tmp_path / "cache", offline=True)
    assert offline.fetch(with_sum, near=None).read_bytes() == CONTENT
    assert offline.fetch(without, near=None).read_bytes() == OTHER
    with pytest.raises(CannotFetch, match="--offline forbids fetching"):
        offline.fetch(model(server.serve("/o", honest(CONTENT)), b"another"), near=None)
    assert len(server.seen) == asked


def test_a_signed_location_is_not_shown_or_stored(cache: ArtifactCache, server: BadServer, heard: Heard) -> None:
    secret = "AKIA9F3K2L5M8N1P4Q7R" + "x9Kd83jfLq02mPzT"
    server.serve(f"/m?token={secret}", honest(CONTENT))
    url = f"http://127.0.0.1:{server.port}/m?token={secret}"
    cache.fetch(model(url, CONTENT), near=None, progress=heard)
    server.serve(f"/m?token={secret}", status(404))
    with pytest.raises(CannotFetch) as raised:
        cache.fetch(model(url, OTHER), near=None)
    stored = b"".join(path.read_bytes() for path in cache.folder.rglob("*.json"))
    assert secret not in str(heard) + str(raised.value) + stored.decode()


def test_a_cache_that_cannot_be_written_is_named(server: BadServer, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, where the folder should be")
    with pytest.raises(Exception, match=f"{tmp_path}/cache.*not a folder") as raised:
        ArtifactCache(tmp_path / "cache").fetch(model(server.serve("/m", honest(CONTENT)), CONTENT), near=None)
    assert type(raised.value).__module__ == "benchwright.core.errors"


def test_a_fetch_leaves_other_files_of_the_same_name_alone(cache: ArtifactCache, server: BadServer) -> None:
    one = cache.fetch(model(server.serve("/1", honest(CONTENT)), CONTENT), near=None)
    two = cache.fetch(model(server.serve("/2", honest(OTHER)), OTHER), near=None)
    assert (one.name, two.name) == ("model.onnx", "model.onnx")
    assert (one.read_bytes(), two.read_bytes()) == (CONTENT, OTHER)


def test_one_content_may_have_several_names(cache: ArtifactCache, server: BadServer) -> None:
    url = server.serve("/m", honest(CONTENT))
    names = ["model.onnx", "weights.bin", "model.onnx"]
    wanted = [Artifact(key="x", filename=name, location=url, sha256=sha256(CONTENT)) for name in names]
    paths = [cache.fetch(each, near=None) for each in wanted]
    assert [path.name for path in paths] == names
    assert all(cache.known(each) == path for each, path in zip(wanted, paths, strict=True))
    assert len(server.seen) == 1


def test_full_disk(server: BadServer, tmp_path: Path) -> None:
    """A file system that takes no more than 64 KiB of a file says so, and nothing is left."""
    import resource

    cache = ArtifactCache(tmp_path / "cache", limits=limits())
    wanted = model(server.serve("/m", honest(CONTENT)), CONTENT)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, hard))
    try:
        with pytest.raises(CannotWrite, match=r"too large for the disk .*cache clean"):
            cache.fetch(wanted, near=None)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert parts(cache) == []
    assert cache.fetch(wanted, near=None).read_bytes() == CONTENT
