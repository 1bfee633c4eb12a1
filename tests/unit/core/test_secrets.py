"""Secrets are replaced, wherever they stand; nothing else is."""

from __future__ import annotations

import json
import shlex
import string

import pytest
import secret_shapes
from hypothesis import example, given
from hypothesis import strategies as st

from benchwright.core.benchmark import Benchmark, Command
from benchwright.core.kept_variables import kept_variables
from benchwright.core.redacted import secrets_of, without_secrets
from benchwright.core.secrets import (
    OWN_VARIABLE,
    REDACTED,
    add_own_names,
    redact,
    redact_body,
    redact_text,
    redact_words,
)

S = "hunter2x9"  # stands for a password
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9"
TOKENS = [
    "ghp_" + "aB3" * 12,
    "gho_" + "aB3" * 12,
    "github_pat_" + "11ABCDE0Y0" * 4,
    "glpat-" + "xY9-" * 5,
    "sk-" + "aB3d" * 12,
    "sk-proj-" + "aB3d" * 12,
    "sk-ant-api03-" + "aB3d" * 12,
    "sk-" + "0123456789abcdef" * 2,
    "xoxb-123456789012-abcdefABCDEF",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH",
    JWT,
    "npm_" + "aB3d" * 9,
    "pypi-AgEIcHlwaS5vcmc" + "aB3d" * 9,
    "AIza" + "aB3d-" * 7,
    "SG." + "aB3d" * 5 + "." + "aB3d" * 10,
    "sk_live_" + "aB3d" * 6,
    "dckr_pat_" + "aB3d" * 7,
    "nvapi-" + "aB3d" * 16,
]
# The 31 of which 20 were kept once, and more.
VARIABLES = {
    "MYSQL_PWD": S, "DB_PASS": S, "PASS": S, "PASSWORD": S, "PGPASSWORD": S, "POSTGRES_PASSWORD": S, "REDIS_PASSWD": S,
    "GH_PAT": S, "GITHUB_TOKEN": S, "CI_JOB_TOKEN": S, "NPM_TOKEN": S, "HF_TOKEN": S, "JWT": S, "BEARER": S,
    "API_KEY": S, "OPENAI_API_KEY": S, "AWS_SECRET_ACCESS_KEY": S, "AWS_ACCESS_KEY_ID": S, "AWS_SESSION_TOKEN": S,
    "AZURE_CLIENT_SECRET": S, "SECRET": S, "SECRET_KEY_BASE": S, "PRIVATE_KEY": S, "SSH_PASSPHRASE": S, "COOKIE": S,
    "DJANGO_CREDENTIALS": S, "BASIC_AUTH": f"me:{S}", "SESSION_ID": S, "GOOGLE_CREDS": S,
    "SENTRY_DSN": f"https://{S}@o1.ingest.sentry.io/1",
    "SLACK_WEBHOOK": f"https://hooks.slack.com/services/T0/B0/{S}",
    "DATABASE_URL": f"postgresql://u:{S}@host:5432/db",
    "AZURE_STORAGE_CONNECTION_STRING": f"AccountName=a;AccountKey={S}==;EndpointSuffix=x",
    "SAS": f"https://a.blob.core.windows.net/c?sv=2020&sig={S}%3D&se=1",
}  # fmt: skip


@pytest.mark.parametrize("name", VARIABLES)
def test_a_secret_variable_is_replaced(name: str) -> None:
    assert S not in redact(VARIABLES)[name]


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://u:{S}@host/db",
        f"postgresql://u:p@{S}@host/db",
        f"postgresql://u:p/{S}@host/db",
        f"mongodb+srv://u:{S}@host",
        f"amqp://:{S}@host",
        f"https://{S}{S}@github.com/x/y.git",
        f"http://host/x?password={S}",
        f"http://host/x?a=1&token={S}&b=2",
        f"http://host/x?api_key={S}#frag",
        f"https://s3/x?X-Amz-Credential={S}&X-Amz-Signature={S}&X-Amz-Date=1",
        f"https://storage.googleapis.com/x?X-Goog-Signature={S}",
        f"Server=h;Database=d;User Id=u;Password={S};",
        f"Server=h;Pwd={S};Database=d",
        f"host=h password={S} user=u",
        f"Authorization: Bearer {S}",
        f"Authorization: Basic {S}",
        f"curl -H 'X-Api-Key: {S}'",
        f"cookie: session={S}",
        f'{{"password": "{S}", "user": "me"}}',
        f"{{'api_token': '{S}'}}",
        f"export DB_PASS={S}; run",
        f"run --password {S} --epochs 3",
        f"run --password='{S} with spaces' x",
        f"run -password {S}",
        f"mysql -u root -p{S} db",
        f"mysqldump -h h -p{S} db | gzip",
        f"curl -u me:{S} http://host",
        f"curl --user me:{S} http://host",
        f"openssl rsa -passin pass:{S}",
        f"keytool -storepass {S}",
        f"-----BEGIN RSA PRIVATE KEY-----\n{S}\n{S}\n-----END RSA PRIVATE KEY-----",
        f"https://hooks.slack.com/services/T00/B00/{S}",
        f"https://discord.com/api/webhooks/123/{S}",
    ],
)
def test_a_secret_in_a_text_is_replaced(text: str) -> None:
    shown = redact_text(text)
    assert S not in shown
    assert REDACTED in shown
    assert redact_text(shown) == shown


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize("around", ["{}", "x {} y", "--header={}", "/{}/x", '"{}"', "https://h/{}", "KEYLESS={}"])
def test_a_token_is_told_by_its_shape(token: str, around: str) -> None:
    assert token[8:] not in redact_text(around.format(token))


@pytest.mark.parametrize(
    "line",
    [
        f"prog --password {S}",
        f"prog --password '{S} b'",
        f"prog '--password={S} b'",
        f"prog --api-key {S}",
        f"prog --hf_token={S}",
        f"prog --token {S}",
        f"prog --db.password {S}",
        f"prog db.password={S}",
        f"prog api_key={S}",
        f"env DB_PASS={S} prog",
        f"sshpass -p {S} ssh host",
        f"redis-cli -h h -a {S}",
        f"/usr/bin/mysql -u root -p{S} db",
        f"docker login -u me -p {S}",
        f"curl -u me:{S} http://h",
        f"curl -H 'Authorization: Bearer {S}' http://h",
        f"sh -c 'mysql -p{S} | cat'",
        f"sh -c 'PASS={S} prog --secret {S}'",
        f"git clone https://me:{S}@github.com/x/y",
        f"prog --connection-string 'Server=h;Pwd={S};'",
        f"prog --client-secret {S} --epochs 3",
    ],
)
def test_a_secret_on_a_command_line_is_replaced_and_the_rest_stays(line: str) -> None:
    words = shlex.split(line)
    shown = redact_words(words)
    assert S not in " ".join(shown)
    assert len(shown) == len(words)
    assert shown[0] == words[0]
    assert redact_words(shown) == shown


ORDINARY = """
python train.py --lr 1e-4 --batch-size 64 --tokenizer bert-base-uncased --max-tokens 512 --max_new_tokens=128 --pad-token <pad>
--eos-token </s> --bos_token_id 1 --num-key-value-heads 8 --key-dim 64 --sort-key name --image-key image_0001_rgb --label-key cls
--passes 3 --pass 3 --token-count 5 --tokens-per-step 4096 --author me --keyframes 3 --monkey patch --keyboard us --compass n
--data s3://bucket/path/x@y -p 8080 -u 1000:1000 --user 1000:1000 http://host:8080/path?email=x@y.com --output /a/b/key.pem
--key /a/b/key.pem --cert ./cert.pem --password-file /run/secrets/db --signature serving_default --session train --auth none
--cookie-jar jar.txt a=b optimizer.lr=0.1 model.key=5 attention.num_keys=8 file:///tmp/x user@host:/path git@github.com:x/y.git
KEY=5 SORT_KEY=7 TOKENIZERS_PARALLELISM=false OMP_NUM_THREADS=8 --seed 0 --device cuda:0 --dtype float16 --model resnet50
-m torch.distributed.run --nproc_per_node=8 --rdzv_endpoint=localhost:29500 hf_bertforsequenceclassificationpipeline
task-1234567890 disk-0 sk-learn risk-assessment-model-2024 ghp_short eyJ xoxo AKIAN /usr/lib/python3.11/site-packages
0123456789abcdef0123456789abcdef01234567 --commit=0123456789abcdef0123456789abcdef01234567 --sign -1 --passthrough yes
""".split()


@pytest.mark.parametrize("index", range(len(ORDINARY)))
def test_an_ordinary_word_is_left_alone(index: int) -> None:
    shown = redact_words(ORDINARY)
    assert shown[index] == ORDINARY[index]
    assert redact_text(ORDINARY[index]) == ORDINARY[index]


@pytest.mark.parametrize("line", secret_shapes.COMMANDS)
def test_no_shape_of_a_secret_on_a_line_is_kept(line: str) -> None:
    words = shlex.split(line)
    shown = redact_words(words)
    assert secret_shapes.V not in " ".join(shown)
    assert secret_shapes.V not in redact_text(line)
    assert len(shown) == len(words)
    assert redact_words(shown) == shown
    assert redact_text(redact_text(line)) == redact_text(line)


@pytest.mark.parametrize("token", secret_shapes.TOKENS)
@pytest.mark.parametrize("around", ["{}", "x {} y", "--header={}", '"{}"', "https://h/{}", "feature/{}"])
def test_no_token_of_a_vendor_is_kept(token: str, around: str) -> None:
    assert token[6:] not in redact_text(around.format(token))


@pytest.mark.parametrize("name", secret_shapes.VARIABLES)
def test_no_secret_variable_is_kept(name: str) -> None:
    assert redact(secret_shapes.VARIABLES)[name] == REDACTED
    assert secret_shapes.V not in redact_text(f"export {name}={secret_shapes.V}")


def test_there_are_more_than_two_hundred_shapes() -> None:
    assert len(secret_shapes.COMMANDS) + len(secret_shapes.VARIABLES) + len(secret_shapes.TOKENS) >= 200


def test_what_only_sounds_like_a_secret_stays() -> None:
    words = secret_shapes.ORDINARY
    assert [(a, b) for a, b in zip(words, redact_words(words), strict=True) if a != b] == []
    assert redact_text(" ".join(words)) == " ".join(words)
    ports = ["docker", "run", "-p", "8080:80", "-u", "1000:1000", "image"]
    assert redact_words(ports) == tuple(ports)


def test_names_of_one_s_own_are_secret_in_every_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHWRIGHT_SECRETS", "seed-phrase, CORP_*  answer")
    for line in (f"prog --seed-phrase {S}", f"prog --seed_phrase={S}", f"prog answer={S}", f"env CORP_ID={S} prog"):
        assert S not in " ".join(redact_words(line.split())), line
        assert S not in redact_text(line), line
    assert redact({"SEED_PHRASE": S, "CORP_ID": "42", "SEED": "7"}) == {
        "SEED_PHRASE": REDACTED,
        "CORP_ID": REDACTED,
        "SEED": "7",
    }
    assert redact_body({"seedPhrase": "x", "answer": S, "answers": "42"}) == {
        "seedPhrase": "x",
        "answer": REDACTED,
        "answers": "42",
    }


FLAG = st.from_regex(r"--?[a-z]{1,10}([-_][a-z]{1,8}){0,2}", fullmatch=True).filter(
    lambda flag: (
        not any(
            part in flag
            for part in "pass pw token key auth secret cred cookie bearer dsn jwt hook sig sas pat session conn user -u -p -a -w".split()
        )
    )
)
PLAIN = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(str),
    st.integers().map(str),
    st.from_regex(r"(/[a-z0-9_.]{1,12}){1,6}", fullmatch=True),
    st.from_regex(r"[a-z]{1,12}(_[a-z0-9]{1,6}){0,3}(\.py|\.json|\.pt)?", fullmatch=True),
    st.from_regex(r"[a-z.]{1,20}=[0-9.e-]{1,10}", fullmatch=True),
    st.from_regex(r"https?://[a-z]{1,10}(\.[a-z]{2,5}){1,2}(:[0-9]{2,5})?(/[a-z0-9]{1,8}){0,4}", fullmatch=True),
).filter(lambda word: not any(part in word for part in ("pw", "pass", "key", "token", "secret", "auth", "pat", "pin")))


@given(st.lists(st.one_of(FLAG, PLAIN), max_size=12))
def test_ordinary_flags_paths_and_numbers_are_never_touched(words: list[str]) -> None:
    assert redact_words(words) == tuple(words)


NAMES = st.sampled_from(["--password", "--api-key", "--secret", "--access-token", "--db-passwd", "--client_secret"])
SECRETS = st.text(alphabet=string.ascii_letters + string.digits + "!#$%^*_+=.", min_size=6, max_size=40)


@given(st.lists(PLAIN, max_size=4), NAMES, SECRETS, st.booleans(), st.lists(PLAIN, max_size=4))
def test_what_follows_a_secret_option_is_always_replaced(
    before: list[str], name: str, secret: str, joined: bool, after: list[str]
) -> None:
    option = [f"{name}={secret}"] if joined else [name, secret]
    shown = redact_words([*before, *option, *after])
    assert shown == (*before, *([f"{name}={REDACTED}"] if joined else [name, REDACTED]), *after)


@given(st.text(alphabet=string.ascii_letters + string.digits + "!$*_+.,;-", min_size=1, max_size=40), st.integers(0, 3))
def test_a_password_in_a_url_is_always_replaced(secret: str, scheme: int) -> None:
    url = f"{('postgresql', 'https', 'mongodb+srv', 'amqps')[scheme]}://me:x{secret}@host.example/db"
    assert redact_text(url) == url.replace(f"x{secret}@", f"{REDACTED}@")


@given(st.text())
def test_replacing_twice_is_replacing_once(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once
    assert redact_words([text, text]) == redact_words(redact_words([text, text]))


PIECES = [
    "password",
    "=",
    ":",
    " ",
    "--",
    "'",
    '"',
    "://",
    "@",
    "token",
    "x1",
    "(redacted)",
    "&",
    "?",
    "key",
    "\n",
    "-p",
    "mysql ",
    ")",
]


@example("mysql -p& -ppassword")
@given(st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_replacing_twice_is_replacing_once_even_where_secrets_abound(text: str) -> None:
    once = redact_text(text)
    assert redact_text(once) == once


def test_keys_of_a_configuration_tell_secrets_too() -> None:
    body = {
        "db": {"password": S, "port": 5, "tokens": 512, "tokenizer": "bert"},
        "argv": ["--api-key", S],
        "API_KEY": S,
    }
    assert redact_body(body) == {
        "db": {"password": REDACTED, "port": 5, "tokens": 512, "tokenizer": "bert"},
        "argv": ["--api-key", REDACTED],
        "API_KEY": REDACTED,
    }


def test_a_configuration_in_a_variable_is_looked_into() -> None:
    config = json.dumps({"argv": ["--api-key", S], "env": {"DB_PASS": S}, "n": 1})
    shown = redact({"MY_CONFIG": config, "BROKEN": f'{{"password": "{S}"', "LIST": "[1, 2]"})
    assert S not in str(shown)
    assert json.loads(shown["MY_CONFIG"]) == {"argv": ["--api-key", REDACTED], "env": {"DB_PASS": REDACTED}, "n": 1}
    assert shown["LIST"] == "[1, 2]"
    assert redact(shown) == shown


def test_only_variables_that_explain_performance_are_kept() -> None:
    environment = {
        "OMP_NUM_THREADS": "8", "CUDA_VISIBLE_DEVICES": "0", "HF_TOKEN": S, "HF_HOME": "/c", "LANG": "C", "HOME": "/root",
        "USER": "me", "MY_SETTING": "1", "MINE": S, "LS_COLORS": "x", "EDITOR": "vi", "SSH_CLIENT": "10.0.0.1",
        "TOKENIZERS_PARALLELISM": "false", "BENCHPROBE_CONFIG": "{}",
    }  # fmt: skip
    kept = kept_variables(environment, also=("MY_*",), changed=("MINE", "BENCHPROBE_CONFIG"))
    assert kept == {
        "CUDA_VISIBLE_DEVICES": "0", "HF_HOME": "/c", "HF_TOKEN": REDACTED, "LANG": "C", "MINE": S, "MY_SETTING": "1",
        "OMP_NUM_THREADS": "8", "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip


def test_a_benchmark_says_what_of_it_is_not_written_down() -> None:
    work = Command(argv=("prog", "--password", S, f"postgres://u:{S}@h"), cwd="/")
    benchmark = Benchmark(name="b", workload=work, source="command line", env={"DB_PASS": S, "SIZE": "3", "GONE": None})
    shown = without_secrets(benchmark)
    assert S not in str(shown)
    assert (shown.env["SIZE"], shown.env["GONE"]) == ("3", None)
    assert secrets_of(benchmark) == ["DB_PASS", "an argument", f"'postgres://u:{REDACTED}@h'"]
    assert secrets_of(shown) == []
    assert without_secrets(shown) == shown


@pytest.mark.parametrize(
    "piece", ["a=", "--", "-----BEGIN PRIVATE KEY-----", "://", "://a:", "mysql ", "key=(", "eyJ", "sk-a-", "password", "&a", "bearer ", "--user ", "x:", "password='", 'password="\\', "--path /a --key-dim 6 "],
)  # fmt: skip
def test_hostile_text_of_any_length_is_done_with(piece: str) -> None:
    """Time that grew with the square of the length would be stopped by the time limit of every test."""
    shown = redact_text(piece * (100_000 // len(piece)))
    assert redact_text(shown) == shown


def test_a_name_that_is_called_secret_later_is_hidden_from_then_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OWN_VARIABLE, "")
    assert redact_text("--seed-phrase correct-horse") == "--seed-phrase correct-horse"
    add_own_names(["seed-phrase"])
    assert redact_text("--seed-phrase correct-horse") == f"--seed-phrase {REDACTED}"
