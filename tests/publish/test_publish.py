"""Bundles: complete, without the names of machines and people, the same each time, and reproducible by a stranger."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest
import yaml
from mountlab.__main__ import main
from mountlab.box.ssh import ssh_names
from mountlab.core import disk
from mountlab.core.checksums import MANIFEST
from mountlab.core.errors import InputError, MountlabError, StoreError
from mountlab.core.model import Box
from mountlab.core.places import SHIPPED
from mountlab.publish import publish as publishing
from mountlab.publish import reproduce
from mountlab.publish.identities.names import distinctive
from mountlab.publish.identities.pseudonyms import Pseudonyms
from mountlab.publish.publish import Wishes, publish
from mountlab.publish.seal_again import seal_again
from mountlab.report import execute
from mountlab.results.imported import import_patterns
from pages import Page
from planted import KEPT, RUN_ID, SECRETS, planted_run
from results.test_imported import dd, write

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


@pytest.fixture(scope="module")
def run(results: Path) -> Path:
    return planted_run(results)


@pytest.fixture(scope="module")
def made(results: Path, run: Path) -> tuple[Path, Path]:
    return publish([run], Wishes(title="Reads", authors=("A. Body",)), results=results)


@pytest.fixture(scope="module")
def bundle(made: tuple[Path, Path]) -> Path:
    return made[0]


@pytest.fixture(scope="module")
def published(bundle: Path) -> Path:
    (path,) = (bundle / "runs").iterdir()
    return path


def no_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles without the seconds that a notebook takes, for tests of what else is in them."""
    monkeypatch.setattr(execute, "write_report", lambda run: disk.replace_file(run / "report.html", b"<p>report"))


# --- what is in it ----------------------------------------------------------------------------------------------------


def test_a_bundle_is_a_folder_and_a_zip_of_the_same_files(made: tuple[Path, Path], results: Path) -> None:
    folder, archive = made
    assert re.fullmatch(r"bundle-reads-\d{4}-\d\d-\d\d", folder.name)
    assert (folder.parent, archive) == (results, folder.with_name(f"{folder.name}.zip"))
    with zipfile.ZipFile(archive) as packed:
        names = packed.namelist()
        assert names == sorted(names)
        assert {entry.date_time for entry in packed.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        for name in names:
            assert packed.read(name) == (folder.parent / name).read_bytes()
    assert len(names) == sum(path.is_file() for path in folder.rglob("*"))
    assert not list(results.glob(".bundle-*"))


def test_everything_that_a_stranger_needs_is_in_it(bundle: Path, published: Path, run: Path) -> None:
    for name in (
        "index.html", "README.md", "LICENSE", "CITATION.cff", "ro-crate-metadata.json", "identities.json",
        "bundle.json", "entry.json", "environment/requirements.lock", "environment/environment.yml",
        "environment/versions.json", "notebooks/20_report.ipynb",
    ):  # fmt: skip
        assert (bundle / name).stat().st_size, name
    for name in (
        "report.html", "notebooks/20_report.ipynb", "run.json", "sweep.yml", "box.yml", "trials.jsonl", "exclude.yml",
        "measurements.parquet", "measurements.csv", "estimates.csv", "comparisons.csv", "caveats.csv", "published.json",
    ):  # fmt: skip
        assert (published / name).stat().st_size, name
    raw = [path for path in run.rglob("raw/**/*") if path.is_file()]
    assert len([path for path in published.rglob("raw/**/*") if path.is_file()]) == len(raw)
    entry = json.loads((bundle / "entry.json").read_text())
    about = {"kind": "bundle", "title": "Reads", "page": "index.html", "runs": [published.name]}
    assert about.items() <= entry.items()
    assert yaml.safe_load((bundle / "CITATION.cff").read_text())["authors"] == [{"name": "A. Body"}]


def test_the_clean_notebooks_hold_no_output_and_the_executed_one_no_time(bundle: Path, published: Path) -> None:
    for notebook in (bundle / "notebooks").iterdir():
        cells = json.loads(notebook.read_text())["cells"]
        assert all(not cell.get("outputs") for cell in cells)
    executed = (published / "notebooks" / "20_report.ipynb").read_text()
    assert f'run = \\"runs/{published.name}\\"' in executed
    assert "start_time" not in executed
    assert "input_path" not in executed


def test_the_page_links_what_is_there_and_loads_nothing(bundle: Path) -> None:
    page = Page((bundle / "index.html").read_text())
    assert page.active() == {"script"}
    assert page.tags["script"] == 1
    assert not page.crossed
    targets = [target for target in page.values("href", "a") if not target.startswith("#")]
    assert targets
    assert [target for target in targets if not (bundle / target).is_file()] == []
    assert "host names" in page.words
    assert "mountlab reproduce ." in page.words


def test_the_report_links_the_raw_output_beside_it_and_holds_the_tables_of_the_bundle(published: Path) -> None:
    page = Page((published / "report.html").read_text())
    links = [unquote(target) for target in page.values("href", "a") if target.startswith("raw/")]
    assert links
    assert [link for link in links if not (published / link).exists()] == []
    saved = [unquote(target) for target in page.values("href", "a") if target.startswith("data:text/csv")]
    assert saved
    assert [secret for secret in SECRETS for text in saved if secret.lower() in text.lower()] == []
    ids = [json.loads(line)["trial_id"] for line in (published / "trials.jsonl").read_text().splitlines()]
    assert any(all(f"\n{trial_id}," in text or f",{trial_id}," in text for trial_id in ids) for text in saved)


def test_standard_tools_read_the_checksums(bundle: Path) -> None:
    done = subprocess.run(
        ["sha256sum", "--quiet", "-c", MANIFEST], cwd=bundle, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert len((bundle / MANIFEST).read_text().splitlines()) == sum(path.is_file() for path in bundle.rglob("*")) - 1


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the validator's own libraries
def test_its_metadata_is_an_ro_crate(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the validator of the RO-Crate community, with the JSON-LD context that comes with rocrate in the place of the
    one on the network: it defines every term that we use under the same address."""
    from importlib import resources

    from rocrate_validator import services
    from rocrate_validator.utils.http import HttpRequester

    context = json.loads((resources.files("rocrate") / "data" / "ro-crate.jsonld").read_text())

    class Answer:
        status_code, headers, text = 200, {"Content-Type": "application/ld+json"}, json.dumps(context)

        def json(self) -> object:
            return context

    monkeypatch.setattr(HttpRequester, "__getattr__", lambda self, name: lambda *_, **__: Answer())
    settings = services.ValidationSettings(
        rocrate_uri=str(bundle),
        profile_identifier="ro-crate-1.1",
        requirement_severity="RECOMMENDED",
        offline=True,
        cache_path=tmp_path / "cache.sqlite",
    )
    found = [(each.severity.name, each.message) for each in services.validate(settings).get_issues()]
    assert [each for each in found if each[0] == "REQUIRED"] == []
    assert [message for _, message in found if "affiliation" not in message and "have a URL" not in message] == [], (
        "but for what we cannot know: whom an author works for"
    )
    graph = json.loads((bundle / "ro-crate-metadata.json").read_text())["@graph"]
    assert {"File", "Dataset", "CreateAction", "Person", "SoftwareApplication"} <= {each["@type"] for each in graph}


def described(bundle: Path) -> dict[str, dict[str, object]]:
    graph = json.loads((bundle / "ro-crate-metadata.json").read_text())["@graph"]
    return {each["@id"]: each for each in graph}


def test_its_metadata_says_what_each_file_is(bundle: Path, published: Path) -> None:
    told, run = described(bundle), f"runs/{published.name}"
    assert told["#author-1"]["@type"] == "Person"
    assert told[f"{run}/box.yml"]["description"] == "The box file, without the names in it"
    assert told["entry.json"]["description"] == "The bundle, for an index of results"
    made, clean = f"{run}/notebooks/20_report.ipynb", "notebooks/20_report.ipynb"
    assert told[made]["description"] == "The notebook that makes a report, as it was executed"
    assert told[clean]["description"] == "The notebook that makes a report, before it is run"
    assert not [name for name, each in told.items() if str(each.get("description")).endswith("ipynb of the bundle")]


# --- what is not in it ------------------------------------------------------------------------------------------------


def contents(archive: Path) -> Iterator[tuple[str, str]]:
    """Every file of a zip, with what is inside of Parquet, as text."""
    with zipfile.ZipFile(archive) as packed:
        for name in packed.namelist():
            data = packed.read(name)
            yield name, data.decode(errors="replace")
            yield name, json.dumps(data.decode(errors="replace"), ensure_ascii=True)
            if name.endswith(".parquet"):
                yield name, pd.read_parquet(io.BytesIO(data)).to_csv()


def test_no_name_that_was_planted_is_left_in_any_byte(made: tuple[Path, Path], run: Path, results: Path) -> None:
    before = "\n".join(path.read_text(errors="replace") for path in run.rglob("*") if path.is_file()).lower()
    assert all(secret.lower() in before for secret in SECRETS), "the test plants what it looks for"
    places = (str(results), str(SHIPPED), str(Path.home()), RUN_ID)
    found = [
        (secret, name)
        for name, text in contents(made[1])
        for secret in (*SECRETS, *places)
        if secret.lower() in f"{name}\n{text}".lower()
    ]
    assert found == []


def test_figures_versions_and_our_own_marks_are_left(published: Path) -> None:
    everything = "\n".join(path.read_text(errors="replace") for path in published.rglob("*") if path.is_file())
    assert [text for text in KEPT if text not in everything] == []


def test_a_bundle_tells_what_the_kernel_was_set_to_and_not_where_its_parameters_point(published: Path) -> None:
    facts = json.loads((published / "run.json").read_text())["facts"]
    told = facts["kernel_command_line"]
    assert (told["mitigations"], told["isolcpus"]) == ("off", "2-7")
    assert {told[name] for name in ("root", "ip", "hostname", "user", "nfsroot", "password")} == {"not kept"}
    assert facts["firmware"]["version"] == "1.10.2.1", "a version, though it looks like an address"


def test_what_was_replaced_is_counted_and_not_told(bundle: Path) -> None:
    told = json.loads((bundle / "identities.json").read_text())["replaced"]
    counts = {each["kind"]: (each["different"], each["times"]) for each in told}
    machines = {"host names", "domains", "network addresses", "hardware addresses", "names of boxes", "user names"}
    things = {"serial numbers", "UUIDs", "stable names of devices", "names of directories", "world-wide names"}
    assert machines | things <= set(counts)
    assert all(0 < different <= times for different, times in counts.values())


def test_the_report_is_of_the_run_without_names(published: Path) -> None:
    words = Page((published / "report.html").read_text()).words
    assert "What does user-" in words
    assert re.search(r"host-\d", words)


@pytest.mark.slow
def test_identities_stay_where_that_is_wished(run: Path, results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_reports(monkeypatch)
    folder, _ = publish([run], Wishes(keep_identities=True, to=results / "kept"), results=results)
    assert "nova7" in (folder / "runs" / RUN_ID / "run.json").read_text()
    assert json.loads((folder / "identities.json").read_text())["replaced"] is None
    assert "Nothing was replaced" in Page((folder / "index.html").read_text()).words
    told = described(folder)
    assert told[f"runs/{RUN_ID}/box.yml"]["description"] == "The box file"
    assert (told["#author-1"]["@type"], told["#author-1"]["name"]) == ("Organization", "The authors of this bundle")
    assert reproduce.check(folder).same


@pytest.mark.long
def test_the_same_run_gives_the_same_bytes(run: Path, made: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / made[0].name).parent.mkdir(exist_ok=True)
    _, archive = publish([run], Wishes(title="Reads", authors=("A. Body",), to=tmp_path / made[0].name))
    with zipfile.ZipFile(archive) as now, zipfile.ZipFile(made[1]) as then:
        assert [name for name in then.namelist() if now.read(name) != then.read(name)] == []
    assert hashlib.sha256(archive.read_bytes()).digest() == hashlib.sha256(made[1].read_bytes()).digest()


def of_logs(place: Path) -> Path:
    """A run of logs from elsewhere."""
    write(place, {"ext4.txt": dd(0.3), "tmpfs.txt": dd(0.1)})
    raw = {"question": "?", "tool": "dd", "files": [f"{place}/{{filesystem}}.txt"]}
    return import_patterns(raw, results=place / "results")


def test_a_run_of_logs_from_elsewhere_was_on_no_box_and_is_published_and_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_reports(monkeypatch)
    folder, archive = publish([of_logs(tmp_path)], Wishes(to=tmp_path / "b"))
    for place in (folder, archive):
        with reproduce.opened(place) as opened:
            checked = reproduce.check(opened)
        assert checked.same
        assert checked.figures > 0


@pytest.mark.long
def test_each_run_stands_beside_the_first_before_it_that_has_figures_in_common(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_reports(monkeypatch)

    def write_comparison(a: Path, b: Path, *, results: Path) -> Path:
        page = results / f"compare-{a.name}-{b.name}" / "report.html"
        page.parent.mkdir(parents=True)
        page.write_text("<p>both")
        return page

    monkeypatch.setattr(execute, "write_comparison", write_comparison)
    other = shutil.copytree(run, tmp_path / "other")
    for path, hour in ((run, "T10"), (other, "T11")):
        info = (path / "run.json").read_text().replace(RUN_ID, RUN_ID.replace("T10", hour))
        info = re.sub('"created_at": "[^"]*"', f'"created_at": "2026-11-20{hour}:19:02+00:00"', info)
        (path / "run.json").write_text(info)
        seal_again(path)
    folder, _ = publish([of_logs(tmp_path), run, other], Wishes(to=tmp_path / "b"))
    names = ("20261120T101902-sweep-box-2", "20261120T111902-sweep-box-2")
    pages = [path.parent.name for path in (folder / "comparisons").rglob("report.html")]
    assert pages == [f"compare-{names[0]}-{names[1]}"]
    assert "tiny (20 Nov, 10:19) and tiny (20 Nov, 11:19)" in Page((folder / "index.html").read_text()).words
    assert reproduce.check(folder).same


def test_the_ssh_configuration_tells_names_of_the_box_and_of_the_way_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(
        "Host nova-bench\n  HostName 10.9.8.7\n  User carol\n  ProxyJump dave@gate\nHost other\n  User eve\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    told = ssh_names(Box(name="b", host="nova-bench"))
    assert (set(told["host"]), set(told["user"])) == ({"10.9.8.7", "gate"}, {"carol", "dave"})
    assert ssh_names(Box(name="local", host="", embedded="loopback")) == {}


@pytest.mark.long
@pytest.mark.parametrize(
    "user", ["zebra", *(pytest.param(user, marks=pytest.mark.long) for user in ("python", "aria", "span", "figure"))]
)
def test_a_user_who_is_called_as_a_word_of_the_template_can_publish(user: str, run: Path, tmp_path: Path) -> None:
    """On a page as ours are: the head stays, and so does the way in which the body is written."""
    page = (
        "<head><style>.zebra span{}</style></head><body><figure class='zebra'>"
        f"<span aria-label='by {user}'>of {user}</span><a href='#{user}'>x</a></figure></body>"
    )
    page_of_user, copy = page.encode(), shutil.copytree(run, tmp_path / run.name)
    (copy / "run.json").write_text((copy / "run.json").read_text().replace("alice", user))
    seal_again(copy)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execute, "write_report", lambda run: disk.replace_file(run / "report.html", page_of_user))
        folder, _ = publish([copy], Wishes(to=tmp_path / "b"))
    (made,) = folder.glob("runs/*/report.html")
    assert re.sub(r"user-\d", user, made.read_text()) == page
    if distinctive(user):  # else it is replaced only where it stands as a name
        assert re.search(r"aria-label='by user-\d'>of user-\d</span>", made.read_text())


@pytest.mark.long
def test_a_run_whose_journal_ends_in_the_middle_of_a_line_is_published(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_reports(monkeypatch)
    copy = shutil.copytree(run, tmp_path / run.name)
    with (copy / "trials.jsonl").open("a") as journal:
        journal.write('{"trial_id": "t9')
    folder, _ = publish([copy], Wishes(to=tmp_path / "b"))
    assert reproduce.check(folder).same


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_place_that_is_taken_a_run_given_twice_and_a_strange_licence_are_refused(run: Path, results: Path) -> None:
    with pytest.raises(StoreError, match="the place is taken"):
        publish([run], Wishes(to=results))
    with pytest.raises(StoreError, match="a run is in a bundle once"):
        publish([run, run], Wishes())
    with pytest.raises(InputError, match="not a licence that SPDX lists"):
        publish([run], Wishes(licence="my own <b>"))


def test_a_replacement_that_changes_figures_is_never_published(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A box called '2' would damage every number: this one does so on purpose."""
    no_reports(monkeypatch)
    content = publishing._content
    monkeypatch.setattr(publishing, "_content", lambda *read, **how: content(*read, **how).replace(b"0.16", b"0.17"))
    with pytest.raises(MountlabError, match="would not hold the figures") as caught:
        publish([run], Wishes(to=tmp_path / "b"))
    assert "read_bandwidth" in caught.value.got
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_left_stops_the_bundle(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    no_reports(monkeypatch)
    monkeypatch.setattr(Pseudonyms, "data", lambda self, data: data)
    with pytest.raises(MountlabError) as caught:
        publish([run], Wishes(to=tmp_path / "b"))
    assert caught.value.what in (
        "the bundle would still hold identities",
        "the bundle would not hold the figures of the runs: replacing a name changed what its raw output says",
    )
    assert "alice" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["compressed", "link"])
def test_what_cannot_be_searched_is_refused(
    what: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_reports(monkeypatch)
    copy = shutil.copytree(run, tmp_path / run.name)
    strange = copy / "raw" / "t0001" / "log"
    strange.write_bytes(b"\x1f\x8b\x08...") if what == "compressed" else strange.symlink_to("/etc/hostname")
    if what == "compressed":
        seal_again(copy)
    with pytest.raises(StoreError) as caught:
        publish([copy], Wishes(to=tmp_path / "b"))
    assert str(caught.value.where).endswith("raw/t0001/log")


@pytest.mark.parametrize("text", ["5, 173042, 1, 4096, 0\n", "5, 173042, alice\n"])
def test_a_compressed_log_is_published_where_it_holds_numbers_alone(
    text: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of all requests of a search is one: other compressed files may hold a name."""
    no_reports(monkeypatch)
    copy = shutil.copytree(run, tmp_path / run.name)
    log = copy / "raw" / "t0001" / "open_lat.log.gz"
    log.write_bytes(gzip.compress(text.encode()))
    seal_again(copy)
    if "alice" in text:
        with pytest.raises(StoreError, match="cannot be searched for identities"):
            publish([copy], Wishes(to=tmp_path / "b"))
    else:
        publish([copy], Wishes(to=tmp_path / "b"))
        assert next((tmp_path / "b").rglob(log.name)).read_bytes() == log.read_bytes()


def test_the_verb_prints_where_the_bundle_is(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    no_reports(monkeypatch)
    monkeypatch.setattr(publishing, "ENVIRONMENT", ())
    assert main(["publish", str(run), "--to", str(tmp_path / "b"), "--licence", "CC0-1.0", "--author", "A <b>"]) == 0
    shown = capsys.readouterr()
    bundle, archive, after = shown.out.splitlines()
    assert [line.split()[0] for line in shown.err.splitlines()] == ["copying", "checking", "searching", "packing"]
    assert [bundle.split()[1], archive.split()[1]] == [str(tmp_path / "b" / "index.html"), str(tmp_path / "b.zip")]
    assert after.startswith("next: ")
    assert after.endswith("mountlab reproduce b.zip")
    assert "A &lt;b&gt;" in (tmp_path / "b" / "index.html").read_text()
    assert "CC0-1.0" in (tmp_path / "b" / "LICENSE").read_text()
