"""What is ready to use: the systemd units, the crontab line, the CI examples and the script that they call."""

import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from servicepath.nightly import history, night, webhook

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
UNITS = ("servicepath-nightly.service", "servicepath-nightly.timer")


def here(text):
    """With this folder in the place of /opt/servicepath, and this Python in that of its own."""
    return text.replace("/opt/servicepath/.venv/bin/python", sys.executable).replace("/opt/servicepath", str(ROOT))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not there")
def test_systemd_understands_the_units(tmp_path):
    for name in UNITS:
        (tmp_path / name).write_text(here((DEPLOY / "systemd" / name).read_text()))
    done = subprocess.run(["systemd-analyze", "verify", *(str(tmp_path / name) for name in UNITS)], capture_output=True, text=True)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("schema", "file"),
    [("vendor.github-workflows", "github-actions.yml"), ("vendor.gitlab-ci", "gitlab-ci.yml")],
)
def test_the_ci_examples_fit_their_schemas(schema, file):
    transform = ["--data-transform", "gitlab-ci"] if "gitlab" in schema else []
    argv = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *transform, str(DEPLOY / file)]
    done = subprocess.run(argv, capture_output=True, text=True)

    assert done.returncode == 0, done.stdout
    spoilt = subprocess.run([*argv[:-1], "/dev/stdin"], input=(DEPLOY / file).read_text().replace("stage: nightly", "stage: [1]").replace(
        "runs-on:", "walks-on:"), capture_output=True, text=True)  # fmt: skip
    assert spoilt.returncode == 1


def test_what_is_to_be_put_into_etc_is_readable_for_the_services_user_and_for_nobody_else():
    text = (DEPLOY.parent / "docs" / "nightly.md").read_text(encoding="utf-8")
    installed = [line.partition("#")[0].split() for line in text.splitlines() if line.startswith("install ")]

    assert installed
    for words in installed:
        assert words[words.index("-m") + 1][-1] == "0"
        assert "servicepath" in words


def command_of(file):
    """The arguments of the nightly command in a unit or crontab."""
    text = (DEPLOY / file).read_text()
    return re.search(r"-m servicepath\.nightly (.*)", text)[1]


@pytest.mark.parametrize("file", ["systemd/servicepath-nightly.service", "crontab"])
def test_the_scheduled_command_is_one_that_nightly_takes(file, tmp_path):
    said = command_of(file).replace("/var/lib/servicepath", str(tmp_path)).replace("$HOME/servicepath", str(tmp_path))
    said = said.replace("--inventory=/etc/servicepath/inventory.yaml", "").replace("$SERVICEPATH_ARGUMENTS", "")
    done = subprocess.run(
        f"{sys.executable} -m servicepath.nightly {said} -- --replay=/nowhere.tar.zst", shell=True, cwd=ROOT, capture_output=True, text=True
    )

    assert done.returncode == 2  # which is the suite's own word: nightly took its arguments, and began
    assert done.stderr.startswith("the suite refused to begin: /nowhere.tar.zst: expected a recording")
    assert (tmp_path / "nights").is_dir()


def test_the_script_that_ci_calls_leaves_the_reports_and_the_status(tmp_path):
    copy = tmp_path / "suite"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", "reports", "data", "lab", ".*_cache", "__pycache__"))
    (copy / "inventory.yaml").write_text("kubeconfig: nowhere.yaml\nnodes: {master: {host: 127.0.0.1}}\nssh: {port: 1}\n")

    def ci(*arguments):
        environment = {"PATH": "/usr/bin:/bin", "PYTHON": sys.executable}
        done = subprocess.run(["sh", "deploy/ci.sh", *arguments], cwd=copy, capture_output=True, text=True, env=environment)
        return done.returncode, {path.name for path in (copy / "reports").iterdir()}

    unseen, refused = ci("-k", "no_interface"), ci("--replay=/nowhere.tar.zst")

    assert unseen == (3, {"report.html", "junit.xml", "facts.json", "pytest.log", "history.html"})
    assert refused == (2, {"history.html"})  # and not the reports of the night before


def yaml_of(file):
    return yaml.safe_load((DEPLOY / file).read_text())


def test_github_keeps_the_nights_whatever_became_of_this_one_and_each_attempts_own():
    steps = yaml_of("github-actions.yml")["jobs"]["nightly"]["steps"]
    (restore,) = (step for step in steps if step.get("uses", "").startswith("actions/cache/restore@"))
    (save,) = (step for step in steps if step.get("uses", "").startswith("actions/cache/save@"))
    (run,) = (step for step in steps if step.get("run") == "sh deploy/ci.sh")

    assert steps.index(restore) < steps.index(run) < steps.index(save)
    assert save["if"] == "always()"
    assert save["with"] == {key: restore["with"][key] for key in ("path", "key")}
    assert "${{ github.run_id }}-${{ github.run_attempt }}" in save["with"]["key"]
    assert save["with"]["key"].startswith(restore["with"]["restore-keys"])
    assert not any(step.get("uses", "").startswith("actions/cache@") for step in steps)


def test_gitlab_keeps_the_nights_whatever_became_of_this_one():
    assert yaml_of("gitlab-ci.yml")["servicepath"]["cache"] == {"key": "servicepath", "paths": ["state/"], "when": "always"}


def test_a_stopped_unit_has_time_to_undo_and_to_keep_the_night():
    unit = (DEPLOY / "systemd" / "servicepath-nightly.service").read_text()
    seconds = {key: 60 * int(minutes) for key, minutes in re.findall(r"^Timeout(\w+)Sec=(\d+)min$", unit, re.MULTILINE)}

    assert re.search("^KillMode=mixed$", unit, re.MULTILINE)  # the signal is the nightly's, not the suite's and its ssh's
    assert seconds["Stop"] >= night.GRACE + history.BUSY + webhook.TIMEOUT
    assert seconds["Start"] > 1800 + 2 * 600 + night.GRACE


def test_the_ci_examples_publish_junit_and_html_and_call_the_script():
    for file in ("github-actions.yml", "gitlab-ci.yml"):
        text = (DEPLOY / file).read_text()

        assert "sh deploy/ci.sh" in text
        assert "reports/junit.xml" in text
        assert re.search(r"reports/$|\[reports/\]", text, re.MULTILINE)
