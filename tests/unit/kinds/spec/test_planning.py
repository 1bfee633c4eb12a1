"""From a test to the jobs of its launches."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import MACHINE
from specifications import file_entry, read, spec_of

from benchwright.core.benchmark import Benchmark, Placement
from benchwright.core.errors import InvalidInput
from benchwright.core.job import Job
from benchwright.core.machine import ANDROID, Machine
from benchwright.core.redacted import secrets_of, without_secrets
from benchwright.core.revision import RevisionInfo
from benchwright.core.run import Plan
from benchwright.core.stop_rule import StopRule
from benchwright.kinds.registry import kind_named, kind_of
from benchwright.kinds.spec.options import SpecOptions
from benchwright.kinds.spec.setup import lacking, missing_option
from benchwright.options.table import Options
from benchwright.plan.placement import make_plan
from benchwright.runs.provenance.file_digests import digest_of
from benchwright.runs.provenance.provenance import provenance_of

ECHO = {"program": "/bin/echo"}


def planned(benchmarks: list[Benchmark], machine: Machine = MACHINE, **settings: Any) -> Plan:
    how = Options(**settings)
    return make_plan(benchmarks, machine, how, kind_of, folder="/run", probe_path=None, usable_cores=[0, 1])


def jobs_of(benchmarks: list[Benchmark], **settings: Any) -> list[Job]:
    return [job for launch in planned(benchmarks, **settings).launches for job in launch]


def options(tmp_path: Path, **more: Any) -> SpecOptions:
    return SpecOptions(**{"programs": ECHO, "model_cache": str(tmp_path / "cache"), **more})


@pytest.mark.compat
@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}),
        ({"OMP_NUM_THREADS": 4}, {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "1"}),
        ({"OMP_NUM_THREADS": "0", "MKL_NUM_THREADS": -1}, {}),
        ({"env": {"OMP_NUM_THREADS": "3"}}, {"OMP_NUM_THREADS": "3", "MKL_NUM_THREADS": "1"}),
    ],
)
def test_a_program_has_one_thread_unless_its_test_says_otherwise(
    tmp_path: Path, said: dict[str, Any], expected: dict[str, str]
) -> None:
    """As FAI-PEP's host sets them; on a phone it sets none."""
    found = read(tmp_path, {"identifier": "x", "command": "{program}", **said}, options=options(tmp_path))
    (job,) = jobs_of(found)
    assert {name: value for name, value in job.env.items() if name.endswith("NUM_THREADS")} == expected
    plan = planned(found, msgspec.structs.replace(MACHINE, system=ANDROID))
    assert "MKL_NUM_THREADS" not in plan.launches[0][0].env
    fields = [key for key in said if key != "env"]
    assert any("not used: on a phone" in note for note in plan.notes.get("net-x", ())) == bool(fields)


def test_one_command_is_an_argv_with_files_and_folders_filled_in(tmp_path: Path) -> None:
    entry = file_entry(tmp_path / "models dir" / "net.pb")
    test = {
        "identifier": "x",
        "commands": ["{program} --net {files.net} --iter {iter} --out '{TGTDIR}' --in {input_files.made} {nothing}"],
        "iter": 5,
        "input_files": {"made": {"filename": "m.pb", "location": "{HOSTDIR}/m.pb"}},
        "output_files": {"o": {"location": "{TGTDIR}/o.txt"}},
    }
    (job,) = jobs_of(read(tmp_path, test, options=options(tmp_path), files={"net": entry}))
    net = job.argv[2]
    assert job.argv == (
        *("/bin/echo", "--net", net, "--iter", "5", "--out", "/run/files/jobs/net-x.D0"),
        *("--in", "/run/files/models/net/m.pb", "{nothing}"),
    )
    assert Path(net).read_text() == "x"
    assert os.path.basename(net) == "net.pb"
    assert not job.shell
    assert job.cwd == str(tmp_path)
    assert set(job.folders) == {"/run/files/jobs/net-x.D0", "/run/files/models/net"}
    assert job.fetch == ("/run/files/jobs/net-x.D0/o.txt",)
    assert job.timeout_s == 300.0
    assert job.printed == "Observer"


@pytest.mark.compat
def test_steps_are_one_script_and_the_models_own_stand_at_its_ends(tmp_path: Path) -> None:
    tests = [
        {
            "identifier": "{ID}",
            "command": "{program} {INDEX}",
            "preprocess": {"commands": ["pre {INDEX}"], "platform_args": {"env": {"A": "b c"}}},
            "postprocess": {"commands": ["post | wc"]},
        }
    ] * 2
    found = read(
        tmp_path,
        *tests,
        options=options(tmp_path),
        repeat=2,
        preprocess={"commands": ["first"]},
        postprocess={"commands": ["{FAIPEPROOT}/libraries/python/last.py --x"]},
    )
    scripts = [next(iter(job.files.values())).splitlines() for job in jobs_of(found)]
    middle = ["env 'A=b c' pre 0", "/bin/echo 0", "(", "post | wc", ")"]
    assert scripts[0] == ["set -e", "first", *middle]
    assert scripts[1] == ["set -e", *(line.replace("0", "1") for line in middle)]
    assert scripts[2] == ["set -e", *middle]
    assert scripts[3][:-1] == scripts[1]
    assert scripts[3][-1].startswith("exec ")
    assert scripts[3][-1].endswith("compat/faipep/libraries/python/last.py --x")
    (job, *_) = jobs_of(found)
    assert job.argv == ("/bin/sh", *job.files)


def test_the_models_own_steps_run_once_whatever_the_launches(tmp_path: Path) -> None:
    tests = [{"identifier": "{ID}", "command": "{program} {INDEX}"}] * 2
    steps = {"preprocess": {"commands": ["first"]}, "postprocess": {"commands": ["last"]}}
    found = read(tmp_path, *tests, options=options(tmp_path), **steps)
    for settings in ({"repeat": 3}, {"warmup_runs": 3}, {"repeat": 2, "interleave": True, "seed": 1}, {}):
        jobs = jobs_of(found, **settings)
        texts = ["".join(job.files.values()) for job in jobs]
        assert [("first" in text, "last" in text) for text in texts] == [
            (number == 0, number == len(texts) - 1) for number in range(len(texts))
        ], settings
    with pytest.raises(InvalidInput, match="--repeat: net has its own postprocess"):
        jobs_of(found, enough=StopRule(seconds=1.0), repeat=9)
    beside = [msgspec.structs.replace(b, placement=Placement(jobs=2)) for b in found]
    with pytest.raises(InvalidInput, match="--jobs: net-0 has steps"):
        jobs_of(beside)


def test_files_of_one_name_beside_different_specifications_are_not_mixed_up(tmp_path: Path) -> None:
    entry = {"net": {"filename": "net.pb", "location": "net.pb"}}
    found = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "net.pb").write_text(name)
        test = {"identifier": name, "command": "{program} {files.net}"}
        found += read(tmp_path / name, test, options=options(tmp_path), files=entry)
    assert [Path(job.argv[1]).read_text() for job in jobs_of(found)] == ["a", "b"]


def test_a_line_for_a_shell_is_given_to_one(tmp_path: Path) -> None:
    test = {"identifier": "x", "command": "{program} a | cat"}
    (job,) = jobs_of(read(tmp_path, test, options=options(tmp_path, programs={"program": "/a b"})))
    assert job.shell
    assert job.argv == ("/a b a | cat",)  # no such file, so it is a command with an argument
    program = tmp_path / "a b"
    program.write_text("")
    (job,) = jobs_of(read(tmp_path, test, options=options(tmp_path, programs={"program": str(program)})))
    assert job.argv == (f"'{program}' a | cat",)


def test_appended_arguments_reach_every_command_but_no_other_step(tmp_path: Path) -> None:
    test = {"identifier": "x", "commands": ["{program} a", "{program} b"], "preprocess": {"commands": ["pre"]}}
    (job,) = jobs_of(read(tmp_path, test, options=options(tmp_path, backends=("mkl",)), command_args="--c d"))
    (script,) = job.files.values()
    assert script == "set -e\npre\n/bin/echo a --c d --backend mkl\nexec /bin/echo b --c d --backend mkl\n"


def test_only_cores_that_exist_are_pinned_and_the_user_decides(tmp_path: Path) -> None:
    def pinned(**test: Any) -> tuple[Job, tuple[str, ...]]:
        plan = planned(read(tmp_path, {"identifier": "x", "command": "a", **test}))
        return plan.launches[0][0], plan.notes.get("net-x", ())

    assert pinned(platform_args={"taskset": "2"}) == (pinned(**{"cpu-list": "1"})[0], ())
    assert pinned(platform_args={"taskset": "2"})[0].cores == (1,)
    job, notes = pinned(platform_args={"taskset": "6"})
    assert job.cores == (1,)
    assert notes == ("x asks for core 2, which cannot be used here: pinned to 1 only",)
    assert pinned(platform_args={"taskset": "f0"})[0].cores is None


def test_pauses_and_what_is_shown(tmp_path: Path) -> None:
    test = {"identifier": "x", "command": "a", "platform_args": {"sleep_before_run": 2}, "log_output": "true"}
    (job,) = jobs_of(read(tmp_path, test, cooldown=3))
    assert (job.cooldown_s, job.wait_s, job.echo) == (3.0, 2.0, True)


def test_libraries_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/before")
    given = (str(tmp_path / "lib" / "a.so"), str(tmp_path / "lib" / "b.so"))
    (job,) = jobs_of(read(tmp_path, options=options(tmp_path, shared_libs=given)))
    assert job.env["LD_LIBRARY_PATH"] == f"{tmp_path}/lib:/before"


def test_sides_alternate_and_keep_their_files_apart(tmp_path: Path) -> None:
    sides = {
        "treatment": RevisionInfo(programs={"program": "/bin/true"}),
        "control": RevisionInfo(programs={"program": "/bin/false"}),
    }
    tests = [{"identifier": "{ID}", "command": "{program} {HOSTDIR}"}] * 2
    found = read(tmp_path, *tests, options=options(tmp_path, **sides))
    jobs = jobs_of(found, repeat=2, interleave=True)
    assert [job.benchmark for job in jobs] == [
        *("net-0 control", "net-0 treatment", "net-0 treatment", "net-0 control"),
        *("net-1 control", "net-1 treatment", "net-1 treatment", "net-1 control"),
    ]
    assert jobs[0].argv == ("/bin/false", "/run/files/models/net.control")
    assert jobs[1].argv == ("/bin/true", "/run/files/models/net")


def test_what_has_no_meaning_is_told(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {
            "identifier": "x",
            "command": "{program} {DATA} {print}",
            "profiler": {"enabled": "true", "profiler": "simpleperf"},
        },
    )
    notes = planned(found).notes["net-x"]
    assert notes == (
        "x asks for the profiler 'simpleperf', which is not run: it would slow down what is measured; "
        "run it on the device by hand: adb shell simpleperf",
        "left as written, since nothing is known of it: {DATA}, {print}; --string-map can give a value",
    )


# -- before a run -------------------------------------------------------------------------------------------------------


def test_programs_and_values_that_only_the_user_can_give_are_asked_for(tmp_path: Path) -> None:
    (found,) = read(tmp_path)
    wrong = missing_option(found)
    assert wrong is not None
    assert str(wrong) == "--program: net-0 runs {program}, and no such program was given; add --program PATH"
    assert kind_named("spec").refusal([found], Options()).exit_code == 2
    (other,) = read(tmp_path, {"identifier": "x", "commands": ["{convert} a", "{print} b"]})
    assert "add --program convert=PATH" in str(missing_option(other))
    files = {"net": {"location": "{MODEL_DIR}/net.pb", "filename": "net.pb"}}
    (third,) = read(tmp_path, options=options(tmp_path), files=files)
    assert """give it with --string-map '{"MODEL_DIR": "…"}'""" in str(missing_option(third))
    (filled,) = read(tmp_path, options=options(tmp_path, string_map={"MODEL_DIR": str(tmp_path)}), files=files)
    assert missing_option(filled) is None
    assert dict(lacking([filled])) == {"net-0": "net.pb not fetched yet; run without --no-setup"}
    (tmp_path / "net.pb").write_text("x")
    assert not dict(lacking([filled]))


def test_a_file_that_was_changed_is_not_used(tmp_path: Path) -> None:
    entry = file_entry(tmp_path / "net.pb")
    (found,) = read(tmp_path, options=options(tmp_path), files={"net": entry})
    assert not dict(lacking([found]))
    (tmp_path / "net.pb").write_text("y")
    assert "net.pb" in dict(lacking([found]))["net-0"]


def test_secrets_are_not_written_down(tmp_path: Path) -> None:
    secret = "hf_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"
    url = f"https://h/net.pb?X-Amz-Signature={'a1' * 32}"
    test = {
        "identifier": "x",
        "command": f"{{program}} --token {secret}",
        "api_token": secret,
        "preprocess": {"commands": [f"curl --header 'Authorization: Bearer {secret}' h"]},
        "env": {"MY_TOKEN": secret},
    }
    files = {"net50v1quantized8bit": {"location": url, "filename": "net.pb", "md5": "0" * 32}}
    given = options(tmp_path, string_map={"ACCESS_TOKEN": secret, "DIR": "/data"})
    (found,) = read(tmp_path, test, options=given, files=files, converter={"name": "json_converter"})
    shown = without_secrets(found)
    text = msgspec.json.encode(shown).decode()
    assert secret not in text
    assert "a1a1a1" not in text
    told = spec_of(shown)
    assert told.string_map["DIR"] == "/data"
    assert (told.files[0].key, told.files[0].md5) == ("net50v1quantized8bit", "0" * 32)
    assert without_secrets(shown) == shown
    assert secrets_of(found)


def test_a_verified_file_is_not_read_again_for_the_record_and_a_changed_one_is(tmp_path: Path) -> None:
    entry = file_entry(tmp_path / "net.pb")
    test = {"identifier": "x", "command": "{program} {files.net}"}
    found = read(tmp_path, test, options=options(tmp_path), files={"net": entry})
    plan = planned(found)
    net = plan.launches[0][0].argv[1]
    assert provenance_of(plan, kind_of).files[net] == entry["md5"]
    Path(net).write_text("y")
    assert provenance_of(plan, kind_of).files[net] == digest_of(net) != entry["md5"]


def test_a_specification_without_secrets_is_itself(tmp_path: Path) -> None:
    test = {"identifier": "x", "commands": ["{program} a"], "preprocess": {"commands": ["true"]}}
    entry = file_entry(tmp_path / "net.pb")
    (benchmark,) = read(tmp_path, test, options=options(tmp_path), files={"net": entry})
    assert without_secrets(benchmark) is benchmark


def test_launches_between_first_and_last_differ_in_their_number_and_folder_only(tmp_path: Path) -> None:
    test = {
        "identifier": "x y",
        "command": "{program} --at {INDEX} --half {INDEX}{INDEX} --out '{TGTDIR}/{INDEX}.txt' {TEMPDIR}",
        "preprocess": {"commands": ["awk 'NR=={INDEX} {print > \"{HOSTDIR}/in_{INDEX}\"}' {TGTDIR}/all"]},
        "output_files": {"o": {"location": "{TGTDIR}/o_{INDEX}.txt"}},
    }
    found = read(tmp_path, test, options=options(tmp_path), preprocess={"commands": ["first {INDEX}"]})
    jobs = jobs_of(found, repeat=4)
    first, *_ = (job.files[job.argv[1]] for job in jobs)
    assert first.startswith("set -e\nfirst 0\n")
    of_first = first.replace("first 0\n", "")
    for number, job in enumerate(jobs):
        folder = f"/run/files/jobs/{job.id}"
        assert job.argv == ("/bin/sh", f"{folder}/steps.sh")
        assert job.fetch == (f"{folder}/o_{number}.txt",)
        script = job.files[job.argv[1]]
        if number:
            expected = of_first.replace(jobs[0].id, job.id).replace("NR==0", f"NR=={number}")
            for before, after in (("in_0", f"in_{number}"), ("--at 0", f"--at {number}"), ("/0.txt", f"/{number}.txt")):
                expected = expected.replace(before, after)
            assert script == expected.replace("--half 00", f"--half {number}{number}")
