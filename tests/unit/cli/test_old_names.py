"""Words that users of other tools type, and what they mean here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchwright.cli.main import cli, meant
from benchwright.compat.milabench.hints import COMMANDS, OPTIONS
from benchwright.core.errors import InvalidInput
from benchwright.options.hints import hint_for_command
from benchwright.runs.known_runs import all_runs


def test_a_run_can_be_named_with_an_underscore(tmp_path: Path) -> None:
    words = ["run", "--run_name", "old.{time}", "--base", str(tmp_path), "--no-store", "-q", "--", sys.executable]
    done = CliRunner().invoke(cli, [*words, "-c", "pass"], standalone_mode=False)
    assert (done.exception, done.return_value) == (None, 0)
    assert [folder.id.partition(".20")[0] for folder in all_runs(tmp_path / "runs")] == ["old"]


def test_multirun_is_matrix_and_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BENCHWRIGHT_SYSTEM", "MILABENCH_SYSTEM"):
        monkeypatch.delenv(name, raising=False)
    done = CliRunner().invoke(cli, ["multirun", "suite.yaml"], standalone_mode=False)
    assert isinstance(done.exception, InvalidInput)
    assert "no system file is named" in str(done.exception)
    assert "multirun\n" not in CliRunner().invoke(cli, ["--help"]).stdout
    assert "Usage: cli matrix " in CliRunner().invoke(cli, ["multirun", "--help"]).stdout


@pytest.mark.parametrize(
    ("typed", "meant_by_it"),
    [
        ("list -n 3", "runs -n 3"),
        ("ls", "runs"),
        ("delete x --yes", "runs delete x --yes"),
        ("benchmark x.py", "run x.py"),
        ("resume", "run --resume"),
        ("resume train -q", "run --resume=train -q"),
        ("resume -q", "run --resume -q"),
        ("help", "--help"),
        ("help run", "run --help"),
        ("help run suite", "run --help suite"),
        ("help list", "runs --help"),
        ("help runs delete", "runs delete --help"),
        ("version", "--version"),
        ("-- true x", "run -- true x"),
        ("corpora location", "find --corpora location"),
        ("models location", "find --corpora location"),
        ("nodes --clean", "devices --sent --clean"),
        ("diff-env a b", "compare --env a b"),
        ("ingest runs/x", "import benchwright runs/x"),
        ("help diff-env", "compare --env --help"),
        ("--version", "--version"),
        ("run list", "run list"),
        ("", ""),
    ],
)
def test_words_of_other_tools_lead_to_the_command(typed: str, meant_by_it: str) -> None:
    assert meant(typed.split()) == meant_by_it.split()


def test_a_command_that_moved_works_and_says_what_to_type(tmp_path: Path) -> None:
    old, new = (
        CliRunner().invoke(cli, words) for words in (["corpora", "location"], ["find", "--corpora", "location"])
    )
    assert (old.stdout, new.stderr) == (new.stdout, "")
    assert old.stderr == "benchwright: 'corpora' is now 'find --corpora'\n"
    done = CliRunner().invoke(cli, ["devices", "--clean"], standalone_mode=False)
    assert "--clean: is about what was sent to machines; add --sent" in str(done.exception)
    done = CliRunner().invoke(cli, ["compare", "--env", "a", "b", "c"], standalone_mode=False)
    assert "--env: compares the environments of two runs" in str(done.exception)


def test_a_file_that_can_be_measured_is_a_target_of_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert meant(["a.py", "-q"]) == ["a.py", "-q"]
    Path("a.py").touch()
    assert meant(["a.py", "-q"]) == ["run", "a.py", "-q"]
    assert meant(["a.py::Net"]) == ["run", "a.py::Net"]


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["rn"], "did you mean 'run'?"),
        (["sleep", "1 2"], "to measure it, write: benchwright run -- sleep '1 2'"),
        (["qqqqqq"], "list them with 'benchwright --help'"),
    ],
)
def test_an_unknown_command_leads_on(typed: list[str], said: str) -> None:
    assert f"no such command: '{typed[0]}'; {said}" in CliRunner().invoke(cli, typed).output


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("pip install x", "no such command: 'pip'; use 'bw dev --select NAME -- uv pip ...'"),
        ("archive", "no such command: 'archive'; pack the folders themselves"),
        ("machine", "no such command: 'machine'; use 'bw doctor --quick'"),
        ("env", "no such command: 'env'; use 'bw doctor --quick'"),
        ("docker", "no such command: 'docker'; write 'docker:' into the system file"),
        ("slurm_system", "no such command: 'slurm_system'; not needed: 'bw run SUITE --on slurm:job=ID'"),
        ("tools pin", "no such command: 'tools'; its commands have no group here: use 'bw pin'"),
        ("data prepare-run", "no such command: 'data'; use 'bw run SUITE', which installs and prepares"),
        ("analysis", "no such command: 'analysis'; its commands have no group here: 'analysis NAME' is 'bw NAME'"),
        ("report --runs R", "no such option: --runs; name the runs without it"),
        ("run --plugin x -- true", "no such option: --plugin; a reporter of your own is a plug-in"),
        ("new x --repo_url U", "no such option: --repo_url; write 'definition: {git: URL"),
        ("run --fulltrace -- true", "no such option: --fulltrace; logs are always kept whole"),
        ("run --noterm -- true", "no such option: --noterm; use --quiet"),
        ("run suite.yaml --capabilities nodes=2", "no such option: --capabilities; write 'nodes' into the system file"),
        ("report --filter_failures", "no such option: --filter_failures; the default score leaves failed"),
        ("report --filter-failures", "no such option: --filter-failures; the default score leaves failed"),
        ("report --latest", "no such option: --latest; name the run, or write 'bw report last'"),
        ("report --consolidate", "no such option: --consolidate; several runs are pooled"),
        ("report --publish KEY", "no such option: --publish; put results into a shared store"),
        ("compare --last 3", "no such option: --last; name the runs"),
    ],
)
def test_what_milabench_has_and_we_have_not_leads_to_what_we_have(typed: str, said: str) -> None:
    done = CliRunner().invoke(cli, typed.split())
    assert (done.exit_code, said in done.output) == (2, True), done.output


def test_every_command_of_milabench_is_one_of_ours_or_has_a_hint() -> None:
    """Its commands in 2025, grouped and flat, and those of older versions."""
    names = """
        archive ci cloud compare container dashboard dev docker dry env gated gather generate install list machine matrix
        multirun new patch pin pip pr prefer-system prepare prepare-run publish replay report resolve run schedule
        sharedsetup shell slurm_system sqlsetup summary system tunnel write_report_to_pr analysis data slurm tools
    """
    for name in names.split():
        ours = CliRunner().invoke(cli, [*meant([name]), "--help"]).exit_code == 0
        assert ours or hint_for_command([name]) is not None, name


def test_an_option_that_nobody_has_is_refused_as_before() -> None:
    assert "o such option" in CliRunner().invoke(cli, ["report", "--qqqqqq"]).output


def test_each_declined_word_is_in_the_page_for_users_of_milabench() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "coming-from-milabench.md").read_text()
    missing = [w for w in (*COMMANDS, *OPTIONS) if f"`{w}" not in page and f" {w}" not in page.replace("_", "-")]
    assert not missing


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("--jobs=0", "give a whole number of 1 or more, not '0'."),
        ("--jobs=x", "give a whole number of 1 or more, not 'x'."),
        ("--seed=x", "give a whole number, not 'x'."),
    ],
)
def test_a_wrong_number_is_said_in_words(option: str, said: str) -> None:
    assert said in CliRunner().invoke(cli, ["run", option, "--", "true"]).output


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        ("cp-template benchmarks/_template benchmarks/x", "bw new NAME"),
        ("harness -b x.json", "bw run SPECIFICATION --program PATH"),
        ("harness.py -b x.json", "bw run SPECIFICATION --program PATH"),
        ("repo_driver --branch main", "bw watch"),
        ("run x.json --simple_local_reporter d", "--local-reporter DIR"),
        ("run x.json --user_identifier me", "--label user_identifier=NAME"),
        ("run x.json --set_freq max", "--lock-clocks"),
    ],
)
def test_words_of_fai_pep_hint_at_what_to_use(words: str, instead: str) -> None:
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 2
    assert instead in done.output


def test_a_script_is_looked_up_in_the_search_folder_without_run(tmp_path: Path) -> None:
    for words in (
        ["linear.py", "--search-dir", "models"],
        ["linear.py::Net", "-s", "models"],
        ["a.py", "--search-dir=x"],
    ):
        assert meant(words) == ["run", *words]
    assert meant(["linear.py"]) == ["linear.py"]
