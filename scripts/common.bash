# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts beside it: which Debian packages are needed for what, and how to get them.
# shellcheck shell=bash disable=SC2034
# What building the programs needs.
PACKAGES_BUILD=(gcc libc6-dev meson ninja-build pkgconf
        libsystemd-dev libmicrohttpd-dev libgnutls28-dev libjansson-dev libinih-dev libcurl4-gnutls-dev libmount-dev libacl1-dev zlib1g-dev
        libjs-dygraphs)

# What scripts/quickstart needs besides.
PACKAGES_QUICKSTART=(curl jq)

# What scripts/test --fast needs besides.
PACKAGES_FAST=(curl openssl libcmocka-dev python3 python3-pytest python3-pytest-xdist)

# What the whole of scripts/test needs besides: the other compiler, lint, valgrind, disks, a container.
PACKAGES_TEST=(clang clang-format clang-tidy shellcheck valgrind curl jq
        nbdkit nbdkit-plugin-dev libnbd-bin fuse3 xfsprogs e2fsprogs btrfs-progs mount util-linux
        sysstat fio strace debootstrap systemd-container groff-base prometheus prometheus-alertmanager
        chromium chromium-driver python3-selenium firefox-esr python3-websocket monitoring-plugins-basic)
# Debian 13 has it no more.
[[ $(. /etc/os-release && echo "${VERSION_ID:-}") != 12 ]] || PACKAGES_TEST+=(collectd-core libyajl2)

# What scripts/package needs besides.
PACKAGES_DEB=(debhelper dpkg-dev libcmocka-dev lintian xz-utils)
PACKAGES_RPM=(rpm libcmocka-dev xz-utils)
for list in PACKAGES_TEST PACKAGES_DEB PACKAGES_RPM; do
        declare -n packages=$list
        # systemd.pc, which says where units go, has a package of its own since Debian 13.
        if [[ $(. /etc/os-release && echo "${VERSION_ID:-}") == 12 ]]; then
                packages+=(systemd)
        else
                packages+=(systemd-dev)
        fi
done
unset -n packages

die() {
        printf '%s: %s\n' "${0##*/}" "$*" >&2
        exit 3
}

# missing_packages NAME...: prints those that are not installed.
missing_packages() {
        local name
        for name; do
                [[ $(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
                        printf '%s\n' "$name"
        done
}

# install_packages NAME...: makes sure that all are installed, as root by apt. Returns 1 with a message on stderr
# when that could not be done; touches nothing when all are there.
install_packages() {
        local missing log
        command -v dpkg-query >/dev/null || {
                echo "this is not Debian: install by hand what corresponds to: $*" >&2
                return 1
        }
        mapfile -t missing < <(missing_packages "$@")
        ((${#missing[@]})) || return 0
        if ((EUID != 0)); then
                echo "missing packages; as root: apt-get install ${missing[*]}" >&2
                return 1
        fi
        log=$(mktemp)
        local -a install=(apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "${missing[@]}")
        # The lists at hand often suffice; they are renewed only when they do not.
        if ! DEBIAN_FRONTEND=noninteractive "${install[@]}" >"$log" 2>&1 </dev/null; then
                if ! { apt-get -o DPkg::Lock::Timeout=300 update &&
                        DEBIAN_FRONTEND=noninteractive "${install[@]}"; } >"$log" 2>&1 </dev/null; then
                        tail -n 20 "$log" >&2
                        rm -f "$log"
                        echo "apt could not install: ${missing[*]}" >&2
                        return 1
                fi
        fi
        rm -f "$log"
}
