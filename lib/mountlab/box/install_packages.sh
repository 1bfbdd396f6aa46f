# Install the Debian packages "$@", and start none of the services in them.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 143' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
fi

install_them() {
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=120 -- "$@" </dev/null
}

ls /var/lib/apt/lists/*Packages* >/dev/null 2>&1 || apt-get update
# Where the lists are too old, the files that they name are gone.
install_them "$@" || { apt-get update && install_them "$@"; }
