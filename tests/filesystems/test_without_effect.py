"""The rules for options that are shown and do nothing, and what a plan can tell from them."""

from __future__ import annotations

from facts import known
from mountlab.core.model import Filesystem
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.without_effect import ANY, RULES, UNDONE, MountState, foreseen, undone, without_effect
from rows import every_row

NEW = "6.18.4-generic"


@every_row("rule", [*RULES, *UNDONE], ids=lambda rule: f"{rule.types[0]}-{rule.options[0]}")
def test_every_rule_names_its_source_and_a_type_that_mountlab_mounts(rule: object) -> None:
    types = rule.types  # type: ignore[attr-defined]
    assert types == ANY or set(types) <= set(FAMILIES)
    source = rule.source  # type: ignore[attr-defined]
    assert source.startswith(("fs/", "mm/", "Documentation/", "mount(8)"))
    assert rule.says.endswith(f"({source})")  # type: ignore[attr-defined]


@every_row(
    ("kind", "words", "idle"),
    [
        ("btrfs", ["compress=zstd", "nodatasum"], {"compress=zstd": "without effect"}),
        ("btrfs", ["nodatasum", "compress=zstd"], {"nodatasum": "turned off"}),
        ("btrfs", ["compress=zstd", "nodatacow"], {"compress=zstd": "turned off"}),
        ("btrfs", ["nodatacow", "compress-force=zstd"], {"nodatacow": "turned off"}),
        ("btrfs", ["nodatacow", "compress=no"], {}),
        ("btrfs", ["compress=no", "nodatacow"], {}),
        ("btrfs", ["nodatacow", "datasum"], {"nodatacow": "turned off"}),
        ("btrfs", ["compress=zstd"], {}),
        ("btrfs", ["dirsync", "lazytime", "sync"], {"dirsync": "without effect", "lazytime": "without effect"}),
        ("overlay", ["sync", "noatime"], {"sync": "without effect"}),
        ("tmpfs", ["sync", "huge=always"], {"sync": "without effect"}),
        ("ext4", ["nodelalloc", "noauto_da_alloc"], {"noauto_da_alloc": "without effect"}),
        ("ext4", ["exec", "user"], {"exec": "turned off"}),
        ("ext4", ["user", "exec"], {}),
        ("ext4", ["exec", "user=bob"], {}),
        ("ext4", ["dev", "owner"], {"dev": "turned off"}),
        ("ext4", ["exec", "owner"], {}),
        ("ext4", ["mand"], {"mand": "without effect"}),
        ("f2fs", ["compress_algorithm=zstd"], {"compress_algorithm=zstd": "extension"}),
        ("f2fs", ["compress_algorithm=zstd", "compress_extension=*"], {}),
        ("f2fs", ["compress_mode=user", "compress_extension=log"], {"compress_extension=log": "ioctl"}),
        ("f2fs", ["nobarrier", "flush_merge"], {"flush_merge": "no flush"}),
        ("ext4", ["sync", "dirsync", "lazytime", "usrquota"], {}),
    ],
)
def test_a_plan_knows_what_the_words_alone_tell(kind: str, words: list[str], idle: dict[str, str]) -> None:
    found = foreseen(kind, words, NEW)
    assert set(found) == set(idle)
    assert all(idle[word] in text for word, text in found.items())


def test_a_rule_of_later_kernels_says_nothing_about_an_earlier_or_unknown_one() -> None:
    words = ["compress=zstd", "nodatasum"]
    assert [bool(foreseen("btrfs", words, kernel)) for kernel in ("5.2.1", "5.3", "")] == [False, True, False]


def test_missing_evidence_meets_no_condition() -> None:
    nothing = MountState({"usrquota": "", "largeio": "", "discard": ""})
    for kind, option in (("ext4", "usrquota"), ("xfs", "largeio"), ("btrfs", "discard"), ("xfs", "inode32")):
        assert without_effect(kind, option, "", nothing, (6, 1)) is None


def test_what_turns_an_option_off_is_named() -> None:
    assert undone("btrfs", "nodatacow", ["noatime", "compress=lzo"]) is not None
    assert "compress=lzo comes later" in str(undone("btrfs", "nodatacow", ["noatime", "compress=lzo"]))
    assert undone("ext4", "nodatacow", ["compress=lzo"]) is None


def test_every_family_foresees_it() -> None:
    below = Filesystem(name="o", type="btrfs", options=("dirsync",), image_bytes=2**30)
    over = Filesystem(name="o", type="overlay", options=("sync",), over=below)
    facts = known(kernel=NEW)
    assert set(FAMILIES["overlay"].foreseen(over, facts)) == {"sync", "over: dirsync"}
    assert set(FAMILIES["btrfs"].foreseen(below, facts)) == {"dirsync"}
    memory = Filesystem(name="r", type="ramfs", options=("sync", "size=1m"), size_bytes=2**20)
    assert set(FAMILIES["ramfs"].foreseen(memory, facts)) == {"sync", "size=1m"}
