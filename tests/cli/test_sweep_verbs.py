"""`mountlab sweep list | new | import-job | check` and `mountlab box list`: what there is, without a box."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from mountlab.__main__ import main
from mountlab.core.model import Box
from mountlab.fio.tool import Fio
from mountlab.results import paths
from mountlab.sweep.planner import make_plan
from sweep.test_plan import FACTS

TINY = """
question: Does it work?
filesystems: {a: {type: tmpfs, size: 64MiB}, b: {type: ramfs, size: 64MiB}}
workloads: {read: {tool: fio, rw: [read, randread], size: 8MiB}}
exclude: [{filesystem: b, rw: randread}]
design: {repeats: 4, warmup: 1}
"""


@pytest.fixture
def params(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    local = (paths.PARAMS / "boxes" / "local.yml").read_text()
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    for name, text in (("sweeps/tiny.yml", TINY), ("boxes/local.yml", local)):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    return tmp_path


def rows(said: str) -> dict[str, str]:
    """First to second column of a table, without its heading."""
    return dict(re.split("  +", line, maxsplit=1) for line in said.splitlines()[1:])


def test_the_list_has_every_sweep_with_its_question(params: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (params / "sweeps" / "recipes").mkdir()
    (params / "sweeps" / "recipes" / "mail.yml").write_text(TINY.replace("Does it work?", "How fast is mail?"))
    (params / "sweeps" / "wrong.yml").write_text(f"{TINY}\nfilesystem: {{}}")
    assert main(["sweep", "list"]) == 0
    found = rows(capsys.readouterr().out)
    assert found.pop("wrong").startswith("wrong file: unknown key")
    assert {name: found[name] for name in ("recipes/mail", "tiny")} == {
        "recipes/mail": "How fast is mail?",
        "tiny": "Does it work?",
    }
    assert "ramdisk" in found, "those that come with Mountlab"


def test_a_new_sweep_is_valid_and_plans(params: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "new", "mail-2"]) == 0
    text = (params / "sweeps" / "mail-2.yml").read_text()
    assert "mountlab plan mail-2 " in text
    assert "NAME" not in text
    assert main(["sweep", "check", "mail-2"]) == 0
    assert main(["sweep", "check", "mail-2", "-p", "preset=small"]) == 0
    sweep = paths.load_sweep("mail-2").sweep
    assert sweep.name == "mail-2"
    plan = make_plan(sweep, Box(name="local", host=""), FACTS, run_id="r1", owner="me", seed=1)
    assert plan.expected_s < 5 * 60
    assert "error" not in capsys.readouterr().err


def test_a_new_sweep_explains_each_key_that_it_has(params: Path) -> None:
    """A comment above each key, since people read the file before any page."""
    main(["sweep", "new", "mine"])
    lines = (params / "sweeps" / "mine.yml").read_text().splitlines()
    keys = [number for number, line in enumerate(lines) if re.match(r"[a-z]+:", line)]
    assert len(keys) >= 8
    assert all(lines[number - 1].startswith("# ") for number in keys)


def test_a_sweep_that_is_there_is_never_written_over(params: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "new", "tiny"]) == 2
    assert "the sweep is there already" in capsys.readouterr().err
    assert (params / "sweeps" / "tiny.yml").read_text() == TINY


@pytest.mark.parametrize("name", ["../boxes/evil", "a/b", "", "a b", "-x.yml"])
def test_a_name_that_leads_elsewhere_is_refused(name: str, params: Path) -> None:
    before = sorted(params.rglob("*"))
    assert main(["sweep", "new", "--", name]) == 2
    assert sorted(params.rglob("*")) == before


def test_check_says_what_would_be_measured(params: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("tiny", str(params / "sweeps" / "tiny.yml")):
        assert main(["sweep", "check", given]) == 0
        said = capsys.readouterr().out
        assert "trials       15: 3 cells x 4 blocks, and 3 warm-up trials" in said
        assert "  read rw=read: a, b\n  read rw=randread: a\n" in said
        assert "box          local\n" in said
    assert main(["sweep", "check", "tiny", "-p", "repeats=2", "-p", "box=db1"]) == 0
    said = capsys.readouterr().out
    assert "3 cells x 2 blocks" in said
    assert "box          db1 (there is no params/boxes/db1.yml)" in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tinny"], "did you mean 'tiny'?"),
        (["tiny", "-p", "published=[absent]"], "no such file of published figures"),
        (["tiny", "-p", "repeats=0"], "design.repeats"),
        (["tiny", "-p", "workloads.read.size=65MiB"], "too large: read rw=read writes 65.0 MiB"),
        (["tiny", "-p", "filesystems.a={type: dir, path: /dev/sdb}"], "below /dev only /dev/shm"),
    ],
)
def test_check_refuses_what_a_run_would_refuse(
    arguments: list[str], said: str, params: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "check", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["-p", "filesystems.b={type: ext4, image: 64MiB, options: [noatme]}"],
            "foreseen     b: noatme: warning: no kernel documents it (Documentation/admin-guide/ext4.rst, mount(8)), "
            "and ext4 will probably refuse the mount; did you mean 'noatime'?",
        ),
        (
            ["-p", "filesystems.a.options=[noatme]"],
            "foreseen     a: noatme: warning: it is probably mistyped; did you mean 'noatime'?",
        ),
        (["-p", "repeats=3"], "caveats      warning: too few trials: n = 3: too few."),
        (
            ["-p", "filesystems.a={type: xfs, device: disk}"],
            "box          local (params/boxes/local.yml lists no scratch device disk)",
        ),
    ],
)
def test_check_says_what_a_plan_foresees_without_a_box(
    arguments: list[str], line: str, params: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", "check", "tiny", *arguments]) == 0
    assert any(shown.startswith(line) for shown in capsys.readouterr().out.splitlines())


JOB_FILE = """\
[global]
directory=/mnt/x
filename=/dev/sdb
group_reporting
[readers]
rw=randread
size=${SIZE}
numjobs=4
"""


def test_a_sweep_is_written_from_a_job_file_and_is_valid(
    params: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my jobs.fio").write_text(JOB_FILE)
    assert main(["sweep", "import-job", str(tmp_path / "my jobs.fio"), "--var", "SIZE=40m"]) == 0
    said = capsys.readouterr().out
    assert "written: " in said
    assert "changed: line 2: directory=/mnt/x is dropped: each trial has a directory of its own" in said
    assert "changed: line 3: filename=/dev/sdb becomes filename=sdb: " in said
    assert "needs:   40MiB on each file system" in said, "four clones share one file"
    assert "then: mountlab sweep check my-jobs" in said
    text = (params / "sweeps" / "my-jobs.yml").read_text()
    assert "size=40m   # was size=${SIZE}: the values of its variables" in text
    assert "image: 256MiB" in text
    assert main(["sweep", "check", "my-jobs"]) == 0
    assert "changed" not in capsys.readouterr().out
    sweep = paths.load_sweep("my-jobs").sweep
    plan = make_plan(sweep, Box(name="local", host=""), FACTS, run_id="r1", owner="me", seed=1)
    assert not plan.skipped


def test_a_job_file_that_is_pasted_into_a_sweep_is_valid_and_its_changes_are_shown(
    params: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pasted = JOB_FILE.replace("${SIZE}", "40m").replace("\n", "\n      ")
    entry = f"workloads:\n  read:\n    tool: fio\n    jobs: |\n      {pasted}\n"
    (params / "sweeps" / "pasted.yml").write_text(re.sub("workloads: .*\nexclude: .*\n", entry, TINY))
    assert main(["sweep", "check", "pasted"]) == 0
    assert "changed      read: line 2: directory=/mnt/x is dropped: " in capsys.readouterr().out


def included(params: Path, files: dict[str, str]) -> Path:
    """A sweep whose job file is mine.fio, with files beside it."""
    for name, text in files.items():
        (params / "sweeps" / name).parent.mkdir(exist_ok=True)
        (params / "sweeps" / name).write_text(text)
    entry = "workloads: {read: {tool: fio, job_file: mine.fio}}\n"
    path = params / "sweeps" / "mine.yml"
    path.write_text(re.sub("workloads: .*\nexclude: .*\n", entry, TINY))
    return path


def test_files_that_a_job_file_includes_are_read_beside_it_and_kept_with_the_sweep(params: Path) -> None:
    files = {"mine.fio": "[a]\ninclude sub/b.fio\nsize=1m\n", "sub/b.fio": "include c.fio\n", "sub/c.fio": "rw=read\n"}
    sweep = paths.load_sweep(included(params, files)).sweep
    text = str(sweep.workloads[0].options["jobs"])
    assert [line for line in text.splitlines() if not line.startswith("#")] == ["[a]", "rw=read", "size=1m"]
    entry = 'workloads: {read: {tool: fio, jobs: "[a]\\ninclude sub/b.fio\\nsize=1m"}}\n'
    (params / "sweeps" / "text.yml").write_text(re.sub("workloads: .*\nexclude: .*\n", lambda _: entry, TINY))
    assert paths.load_sweep("text").sweep.workloads[0].options["jobs"] == text.rstrip()
    files["sub/c.fio"] += "stats=1\n"
    (remark,) = Fio().remarks(paths.load_sweep(included(params, files)).sweep.workloads[0])
    assert remark.startswith("line 5 (sub/c.fio, line 2): stats=1 is dropped: ")


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"mine.fio": "[a]\nrw=read\ninclude gone.fio\n"}, ("mine.fio, line 3", "gone.fio")),
        ({"mine.fio": "[a]\ninclude ../../x\n"}, ("mine.fio, line 2", "lies beside it")),
        ({"mine.fio": "[a]\ninclude mine.fio\n"}, ("mine.fio, line 2", "none of which includes itself")),
        (
            {"mine.fio": "[a]\ninclude b.fio\nruntime=x\n", "b.fio": "size=1m\nioscheduler=x\n"},
            ("line 4 (b.fio, line 2)", "(line 3 of the file itself)"),
        ),
    ],
)
def test_what_is_wrong_in_or_with_an_included_file_is_said_with_its_name_and_line(
    files: dict[str, str], words: tuple[str, ...], params: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    included(params, files)
    assert main(["sweep", "check", "mine"]) == 2
    heard = capsys.readouterr().err
    assert [word for word in words if word not in heard] == []


def test_a_job_file_with_what_only_its_author_knows_is_refused_with_its_text(
    params: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.fio").write_text(JOB_FILE + "opendir=/x\n")
    assert main(["sweep", "import-job", str(tmp_path / "a.fio")]) == 2
    heard = capsys.readouterr()
    assert "# refused: a variable without a value; allowed: a value for SIZE" in heard.out
    assert "filename=sdb   # was filename=/dev/sdb" in heard.out
    assert "a.fio, line 7" in heard.err
    assert "--var SIZE=..." in heard.err
    assert "a.fio, line 9" in heard.err
    assert not (params / "sweeps" / "a.yml").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--name", "tiny"], "the sweep is there already"), (["--name", "../x"], "a name may hold letters"),
        (["--var", "SIZE"], "not a value of a variable"),
        (["--var", "SIZE=1m", "--size", "4"], "a number with its unit"),
    ],
)  # fmt: skip
def test_arguments_of_an_import_that_cannot_be_are_refused(
    arguments: list[str], words: str, params: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.fio").write_text(JOB_FILE)
    before = sorted(params.rglob("*"))
    assert main(["sweep", "import-job", str(tmp_path / "a.fio"), *arguments]) == 2
    assert words in capsys.readouterr().err
    assert sorted(params.rglob("*")) == before


def test_a_job_file_that_is_not_there_is_named(params: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "import-job", "gone.fio"]) == 2
    heard = capsys.readouterr().err
    assert "no such job file" in heard
    assert "gone.fio" in heard


def test_boxes_are_listed_with_the_way_to_them(params: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = "host: db1\nuser: me\nport: 2222\nlabel: rack\nscratch: {data: /dev/disk/by-id/x}\n"
    (params / "boxes" / "mine.yml").write_text(mine)
    (params / "boxes" / "wrong.yml").write_text("hots: db1\n")
    assert main(["box", "list"]) == 0
    found = rows(capsys.readouterr().out)
    assert found["local"].split() == ["starts", "by", "itself", "(loopback)", "none"]
    assert re.split("  +", found["mine"]) == ["ssh -p 2222 me@db1", "data", "rack"]
    assert found["wrong"].startswith("wrong file: unknown key")


@pytest.mark.box
@pytest.mark.requires_root
@pytest.mark.requires_program("sshd", "fio", "mount", "losetup")
def test_a_new_sweep_plans_on_the_local_box(params: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["sweep", "new", "mine"])
    assert main(["plan", "mine"]) == 0
    assert "6 cells x 5 blocks" in capsys.readouterr().out
