#!/bin/sh
# Builds, mends or updates .venv, the Python environment that requirements.lock describes: from PyPI alone, with no conda.
# Takes no time where nothing changed. `lib/env.sh find` only prints the Python that it would be built with.
# PYTHON=/path/to/python overrides the search.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
venv=$root/.venv
# Written last, so that an environment without it is one whose making was interrupted.
stamp=$venv/mountlab-env.txt
cd "$root"

say() { printf '%s\n' "$*" >&2; }

die() { # WHAT [DETAIL...]
    say "make env: $1"
    shift
    for detail; do say "  $detail"; done
    exit 1
}

# Version and verdict of a Python ("3.11.2 ok", "3.10.1 old", "3.11.2 no-venv"), nothing where it does not run.
# Distributions ship Python without venv or without what venv needs, so both are tried.
judge() {
    "$1" - 2>/dev/null <<'PYTHON' || true
import sys
verdict = "ok"
if sys.version_info < (3, 11):
    verdict = "old"
else:
    try:
        import ensurepip, venv
    except ImportError:
        verdict = "no-venv"
print("%d.%d.%d %s" % (sys.version_info[0], sys.version_info[1], sys.version_info[2], verdict))
PYTHON
}

how_to_get() { # python|venv
    if command -v apt-get >/dev/null 2>&1; then
        case $1 in
            venv) echo "apt install python${no_venv_version%.*}-venv   (for the distribution's own Python: python3-venv)" ;;
            *) echo "apt install python3 python3-venv   (Debian 12, Ubuntu 24.04 or later)" ;;
        esac
    elif command -v dnf >/dev/null 2>&1; then echo "dnf install python3.12"
    elif command -v zypper >/dev/null 2>&1; then echo "zypper install python312"
    elif command -v pacman >/dev/null 2>&1; then echo "pacman -S python"
    else echo "install Python 3.11 or later, with its venv module, by this machine's package manager"
    fi
}

# Sets python to the first that will do, or says what was found instead. 3.14 comes late: libraries reach a new Python last.
find_python() {
    if [ -n "${PYTHON:-}" ]; then set -- "$PYTHON"; else set -- python3.13 python3.12 python3.11 python3.14 python3; fi
    found='' no_venv='' no_venv_version=''
    for python; do
        verdict=$(judge "$python")
        case $verdict in
            *' ok') return ;;
            *' no-venv') [ -n "$no_venv" ] || { no_venv=$python no_venv_version=${verdict%% *}; } ;;
        esac
        [ -z "$verdict" ] || found="${found:+$found, }$python (${verdict%% *})"
    done
    found=${found:-"none of $*"}
    if [ -n "$no_venv" ]; then
        die "$no_venv cannot make virtual environments: its venv or ensurepip module is missing" \
            "found: $found" "next:  $(how_to_get venv)"
    elif [ -n "${PYTHON:-}" ]; then
        die "PYTHON=$PYTHON is no Python 3.11 or later" "found: $found" "next:  make env PYTHON=/path/to/python3.11"
    fi
    die "Python 3.11 or later is needed" "found: $found" "next:  $(how_to_get python)" \
        "or:    make env PYTHON=/path/to/python3.11"
}

# What an environment in order has in its stamp: a moved or copied tree, or a changed lock, has another.
place() { echo "$root"; }
recipe() { cat requirements.lock pyproject.toml lib/env.sh | cksum; }

base_of() { "$1" -c 'import sys; print(sys.base_prefix, sys.version)' 2>/dev/null; }

# Whether .venv was finished here, its Python still runs, and it is the Python that was asked for.
sound() {
    [ -f "$stamp" ] && [ "$(head -n 1 "$stamp")" = "$(place)" ] && base=$(base_of "$venv/bin/python") &&
        { [ -z "${PYTHON:-}" ] || [ "$base" = "$(base_of "$PYTHON")" ]; }
}

make_venv() {
    find_python
    [ ! -e "$venv" ] || say "make env: .venv was interrupted, moved, or made by another Python: rebuilding it"
    say "make env: .venv with $python (${verdict%% *})"
    "$python" -m venv --clear "$venv" || die "$python -m venv failed" "next:  see its message above, or try another PYTHON=..."
}

install_uv() {
    awk '/^uv==/ { wanted = 1 } wanted { print } wanted && !/\\$/ { exit }' requirements.lock >"$venv/uv.lock"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$venv/uv.lock" ||
        die "uv could not be installed" "next:  is PyPI within reach? pip's own settings (proxy, mirror, certificates) are used"
}

install_packages() {
    say "make env: $(grep -c '^[^ #].*==' requirements.lock) packages (the first time about 250 MB are fetched)"
    # uv takes seconds, but knows nothing of a mirror, a proxy or certificates that are set up for pip only.
    "$venv/bin/uv" pip sync --quiet --require-hashes --python "$venv/bin/python" requirements.lock || {
        say "make env: uv could not; trying pip, which has settings of its own"
        # The lock lists all there is. Left to find dependencies, pip up to 23.2 refuses those that are named with extras.
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock ||
            die "the packages of requirements.lock could not be installed" "next:  see above; the fetched packages are kept"
    }
    # The build backend is of the lock, too: nothing is fetched here.
    "$venv/bin/uv" pip install --quiet --offline --no-deps --no-build-isolation --python "$venv/bin/python" \
        --editable . || die "mountlab itself could not be installed" "next:  see above: pyproject.toml cannot be built"
}

# A library that does not load on this machine is found here and not in the middle of a run. Bytecode is written
# even where the user's settings forbid it, since otherwise every notebook would start seconds later.
try_packages() {
    PYTHONDONTWRITEBYTECODE='' "$venv/bin/python" -c '
import fabric, ipykernel.kernelapp, ipywidgets, matplotlib.pyplot, nbconvert, pandas, papermill
import pyarrow.parquet, pydantic, scipy.stats, seaborn, tqdm.auto, yaml' || die "the packages are installed but do not load" "next:  see above for the one at fault"
}

# In JupyterLab the kernel has a name that no other environment's has. It does not warn on the terminal, before a notebook of
# papermill, that its TCP is not encrypted: that is a port of 127.0.0.1, to which only root of this machine could listen.
name_kernel() {
    "$venv/bin/python" -m ipykernel install --sys-prefix --frozen_modules --name python3 --display-name 'Mountlab (.venv)' >/dev/null ||
        die "the kernel for JupyterLab could not be installed" "next:  see above"
    mkdir -p "$venv/etc/ipython"
    echo "c.IPKernelApp.log_level = 'ERROR'" >"$venv/etc/ipython/ipython_kernel_config.py"
}

# Outputs of notebooks are taken out on their way into git, of the files that .gitattributes names. This sets the filter in
# this repository only, and only where git has none of this name; in worktrees the relative path finds each one's own .venv.
LANGUAGE=metadata.language_info
STRIPPED="$LANGUAGE.codemirror_mode $LANGUAGE.file_extension $LANGUAGE.mimetype $LANGUAGE.nbconvert_exporter"
STRIPPED="$STRIPPED $LANGUAGE.pygments_lexer $LANGUAGE.version"
strip_notebooks() {
    command -v git >/dev/null 2>&1 && [ -e "$root/.git" ] || return 0
    ! git config --get filter.nbstripout.clean >/dev/null 2>&1 || return 0
    git config --local filter.nbstripout.clean ".venv/bin/python -m nbstripout --keep-id --extra-keys '$STRIPPED'" ||
        say "make env: git could not be set up to strip notebooks; nbstripout notebooks/*.ipynb does it by hand"
}

case ${1:-} in
    find) find_python && echo "$python" && exit ;;
    '') ;;
    *) die "unknown argument: $1" "allowed: none, or find" ;;
esac

strip_notebooks
if sound; then
    [ "$(tail -n 1 "$stamp")" != "$(recipe)" ] || exit 0
    rm -f "$stamp"
else
    rm -f "$stamp"
    make_venv
fi
install_uv
install_packages
try_packages
name_kernel
{ place; recipe; } >"$stamp.new"
mv "$stamp.new" "$stamp"
say "make env: ready"
