"""The plan as people and as programs read it."""

from __future__ import annotations

import json

from facts import known
from mountlab.sweep.plan import Plan
from mountlab.sweep.plan_text import devices, directories, plan_json, plan_text
from mountlab.sweep.planner import make_plan
from mountlab.sweep.state_text import states_json
from sweep.test_plan import BOX, FACTS
from sweeps import DD_READ, DD_WRITE, DIR, EXT4, TMPFS, sweep

SCRATCH = {"type": "ext4", "device": "data"}
SURVEYED = known(FACTS, room={"disk": 2**30, "d": 2**30}, devices={"disk": "/dev/disk/by-id/x: /dev/sdb is blank"})


def make() -> Plan:
    filesystems = {"t": TMPFS, "e": EXT4, "disk": SCRATCH, "d": {**DIR, "path": "/srv/data"}}
    the_sweep = sweep(filesystems=filesystems, workloads={"r": DD_READ}, design={"repeats": 2, "warmup": 1}).sweep
    return make_plan(the_sweep, BOX, SURVEYED, run_id="r1", owner="me", seed=7)


def test_everything_in_the_plan_can_be_written_as_json() -> None:
    the_plan = make()
    view = json.loads(json.dumps(plan_json(the_plan, SURVEYED)))
    assert view["commands"] == [list(argv) for argv in the_plan.commands()]
    assert (view["trials"], view["warmup_trials"], view["seed"], view["as_root"]) == (24, 8, 7, True)
    assert (view["sweep"], view["box"], view["run_id"]) == ("tiny", "local", "r1")
    assert [row["trial_id"] for row in view["order"]] == [trial.trial_id for trial in the_plan.trials]


def test_json_tells_what_each_trial_prepares_and_measures() -> None:
    (row, *_) = plan_json(make(), SURVEYED)["order"]
    assert row["prepare"][0][:2] == ["dd", "if=/dev/zero"]
    assert row["measured"][0] == "dd"
    assert row["cell"].endswith(("r cache=cold", "r cache=warm"))


def test_every_device_that_would_be_formatted_is_named_with_what_is_on_it() -> None:
    assert devices(make(), SURVEYED) == {
        "e": "a loop device on a new image of 128MiB",
        "disk": "/dev/disk/by-id/x: /dev/sdb is blank",
    }


def test_every_directory_that_is_made_is_named() -> None:
    named = directories(make())
    assert named[:2] == ["/var/tmp/mountlab-root/r1", "/dev/shm/mountlab-root/r1"]
    run = "/var/tmp/mountlab-root/r1"
    assert set(named[2:]) == {f"{run}/mnt/t", f"{run}/mnt/e", f"{run}/mnt/disk", "/srv/data/mountlab-r1-d"}


def test_no_command_names_a_directory_that_the_plan_does_not() -> None:
    view = plan_json(make(), SURVEYED)
    allowed = (*view["directories"], "/dev/disk/by-id/x", "/dev/zero", "/dev/null")
    for row in view["order"]:
        for argv in (row["measured"], *row["prepare"]):
            paths = [word.partition("=")[2] for word in argv if "=/" in word]
            assert all(path.startswith(allowed) for path in paths)


def test_the_text_says_what_where_and_how_long() -> None:
    text = plan_text(make(), SURVEYED)
    assert text.startswith("Does it work?\n\nbox          local (bench, Linux 6.1), as root\n")
    assert "trials       24: 8 cells x 2 blocks, and 8 warm-up trials\n" in text
    assert "time         about " in text
    assert "order        drawn with seed 7 (-p seed=7 draws the same again)\n" in text
    assert "formats      e: a loop device on a new image of 128MiB\n" in text
    assert "\n             disk: /dev/disk/by-id/x: /dev/sdb is blank\n" in text
    assert "\n             /srv/data/mountlab-r1-d\n" in text


def test_what_lies_on_several_devices_is_not_kept_and_its_cost_is_that_of_each_mount() -> None:
    on_two = {"type": "btrfs", "image": "512MiB", "members": 2, "state": ["fresh", "aged"]}
    aged = {"aged": {"fill": "50%", "churn": 100}}
    the_sweep = sweep(filesystems={"b": on_two}, states=aged).sweep
    facts = known(FACTS, kernel_filesystems=["btrfs"])
    the_plan = make_plan(the_sweep, BOX, facts, run_id="r1", owner="me", seed=7)
    text = plan_text(the_plan, facts)
    assert "made again from the seed before each mount, about" in text
    assert "only a state on one device can be kept" in text
    (state,) = states_json(the_plan)
    assert (state["kept"], state["kept_bytes"], state["makes_s"]) == (False, 0, state["restores_s"])
    assert not any("keep_state.sh" in argv for argv in the_plan.commands())
    of_one = sweep(filesystems={"b": {**on_two, "members": 1}}, states=aged).sweep
    kept = make_plan(of_one, BOX, facts, run_id="r1", owner="me", seed=7)
    assert the_plan.expected_s > kept.expected_s + 1000, "each of two mounts writes it"


def test_the_text_says_how_long_a_trial_should_measure_unless_that_is_switched_off() -> None:
    assert "measured " not in plan_text(make(), SURVEYED)
    the_plan = make_plan(sweep(design={"shortest_trial": "1s"}).sweep, BOX, FACTS, run_id="r1", owner="me", seed=1)
    assert "\nmeasured     1.00 s or more in each trial, or a caveat says so\n" in plan_text(the_plan, FACTS)


def test_the_text_shows_each_different_command_once_and_scripts_by_name() -> None:
    text = plan_text(make(), SURVEYED)
    for line in (
        "e, made 3 times, and once without its options, to see what the kernel shows by itself:",
        "disk, made 3 times:",
        "  image.sh /var/tmp/mountlab-root/r1/img/e.img 134217728 full   # the image, all its blocks allocated "
        "beforehand",
        "  mount -t ext4 -o noatime DEVICE /var/tmp/mountlab-root/r1/mnt/e",
        "  detach.sh DEVICE /var/tmp/mountlab-root/r1/img/e.img   # afterwards",
        "  guard.sh /dev/disk/by-id/x '' ''   # the device must be claimed for Mountlab, and nothing may use it",
        "  r cache=cold",
        "  r cache=warm",
    ):
        assert text.count(f"\n{line}\n") == 1, line
    assert "refuse()" not in text
    assert text.count("    measure  dd if=") == 2
    assert text.count("    prepare  dd if=/dev/zero") == 2
    assert text.count("    ready    dd if=") == 2
    read_twice = "dd.img of=/dev/null bs=1048576 count=8   (2 times)"
    assert text.count(f"{read_twice}\n") == 1, "warm"
    assert text.count(f"{read_twice}   (on t only)\n") == 1, "cold, where that is not possible"
    assert text.endswith("add --json.")


def test_where_nothing_is_formatted_the_text_says_so_and_why_some_are_left_out() -> None:
    the_sweep = sweep(filesystems={"d": DIR}).sweep
    facts = known(FACTS, rights="none")
    the_plan = make_plan(the_sweep, BOX, facts, run_id="r1", owner="me", seed=1)
    text = plan_text(the_plan, facts)
    assert "formats      nothing\n" in text
    assert "without root\n" in text


def test_what_is_skipped_is_shown_with_its_commands_and_the_reason() -> None:
    pmfs = {"type": "pmfs", "device": "nvm", "size": "64MiB", "options": ["jsize=4M"]}
    huge = {"type": "hugetlbfs", "size": "64MiB"}
    mapped = {"tool": "fio", "rw": "read", "size": "2MiB", "ioengine": "mmap"}
    facts = known(FACTS, kernel_filesystems=["tmpfs", "hugetlbfs"])
    the_sweep = sweep(
        filesystems={"t": TMPFS, "p": pmfs, "h": huge}, workloads={"w": DD_WRITE, "m": mapped}, design={"repeats": 1}
    ).sweep
    the_plan = make_plan(the_sweep, BOX, facts, run_id="r1", owner="me", seed=1)
    text = plan_text(the_plan, facts)
    assert "\np, skipped: pmfs needs a kernel with the pmfs driver (linux-pmfs, 3.11) booted with memmap=" in text
    assert "\n  mount -t pmfs -o physaddr=ADDRESS,init=67108864,jsize=4M none " in text
    assert "\n  h/w: skipped: hugetlbfs has no write()" in text
    sent = [" ".join(argv) for argv in the_plan.commands()]
    assert not any("pmfs" in command for command in sent)
    assert plan_json(the_plan, facts)["skipped"].keys() == {"p/w", "p/m", "h/w"}
    assert len([command for command in sent if "hugetlbfs" in command and "timed.sh" in command]) == 1


def test_devices_that_are_made_for_a_file_system_are_named() -> None:
    filesystems = {
        "z": {"type": "ext4", "zram": "64MiB"},
        "j": {"type": "ext4", "image": "64MiB", "journal_image": "16MiB"},
        "o": {"type": "overlay", "over": {"type": "ext4", "image": "64MiB"}},
    }
    the_plan = make_plan(sweep(filesystems=filesystems).sweep, BOX, FACTS, run_id="r1", owner="me", seed=1)
    assert devices(the_plan, FACTS) == {
        "z": "a new zram device of 64MiB",
        "j": "a loop device on a new image of 64MiB, its journal on a new image of 16MiB",
        "o": "a loop device on a new image of 64MiB",
    }


def test_options_that_are_known_not_to_be_in_effect_are_said_beforehand() -> None:
    """Traps: ramfs takes every word; xfs turns DAX off without a device that has it."""
    filesystems = {
        "r": {"type": "ramfs", "size": "64MiB", "options": ["noatime", "mode=700", "data=writeback", "nobarrier"]},
        "e": {"type": "ext4", "image": "64MiB", "options": ["dax"]},
        "never": {"type": "ext4", "image": "64MiB", "options": ["dax=never"]},
        "disk": {"type": "ext4", "device": "data", "options": ["dax=always"]},
    }
    the_sweep = sweep(filesystems=filesystems).sweep
    room = known(FACTS, room={"disk": 2**30})
    for has_dax, named in ((False, {"r", "e", "disk"}), (True, {"r", "e"})):
        facts = known(room, device_dax={"data": has_dax})
        text = plan_text(make_plan(the_sweep, BOX, facts, run_id="r1", owner="me", seed=1), facts)
        lines = [line[13:] for line in text.splitlines() if " accepts every word" in line or "has no DAX" in line]
        assert {line.partition(":")[0] for line in lines} == named
        assert [line.split(": ")[1] for line in lines[:2]] == ["data=writeback", "nobarrier"]
    assert "\nforeseen     r: data=writeback: ramfs accepts every word, and ignores all but mode=" in text
