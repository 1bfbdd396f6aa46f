"""publish: write runs as a folder and a zip that stand alone."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import DIRECTORY, RUN, argument
from mountlab.cli.shared import Arguments, run_of, say, verb
from mountlab.core import disk
from mountlab.core.errors import Interrupted
from mountlab.core.extras import need


def add(verbs: Any) -> None:
    publish = verb(verbs, "publish", _publish, "a folder and a zip of runs that stand alone, without names of machines")
    argument(publish, RUN, "runs", nargs="+", metavar="RUN")
    argument(publish, DIRECTORY, "--to", metavar="DIR", help="the folder (default: results/bundle-TITLE-DATE)")
    publish.add_argument("--title", help="default: the names of the sweeps")
    publish.add_argument("--author", action="append", default=[], help="as it is to be cited; may be given again")
    publish.add_argument("--licence", help="an SPDX identifier (default: CC-BY-4.0)")
    publish.add_argument(
        "--keep-identities", action="store_true", help="host names, addresses, serials, users as they are"
    )
    publish.add_argument(
        "--accept", action="append", default=[], metavar="FINGERPRINT",
        help="publish what looks like a secret or a name, and is none; may be given again",
    )  # fmt: skip


def _publish(arguments: Arguments) -> int:
    need("publish", "a bundle")
    from mountlab.publish.publish import Wishes, publish
    from mountlab.report.execute import write_index

    wishes = Wishes(
        to=arguments.to,
        title=arguments.title,
        authors=tuple(arguments.author),
        keep_identities=arguments.keep_identities,
        accept=tuple(arguments.accept),
        **({"licence": arguments.licence} if arguments.licence else {}),
    )
    runs = [run_of(path) for path in arguments.runs]
    try:
        folder, archive = publish(runs, wishes, say=say)
    except KeyboardInterrupt:
        raise Interrupted("run it again", in_python="run it again", what="stopped; no bundle is made") from None
    write_index()
    print(f"bundle: {disk.path_text(folder / 'index.html')}\nzip:    {disk.path_text(archive)}")
    print(f"next:   send the zip; who gets it checks every figure: mountlab reproduce {archive.name}")
    return 0
