#!/bin/sh
# Sets up `.venv` in the tree, and what the system lacks: sh scripts/setup.sh PYTHON [test]
# Says before it installs anything; the second time it finds everything in place and ends at once.
set -eu
python=${1:-python3}
purpose=${2:-run}
bin=.venv/bin

say() { printf 'setup: %s\n' "$1"; }

install_packages() { # what for, packages…
    why=$1
    shift
    if ! command -v apt-get >/dev/null 2>&1; then
        say "$why needs $* and this system has no apt-get; install them by your own package manager"
        return 0
    fi
    if [ "$(id -u)" = 0 ]; then as_root=; elif command -v sudo >/dev/null 2>&1; then as_root=sudo; else
        say "$why needs: apt-get install --no-install-recommends $*  (as root; going on without)"
        return 0
    fi
    say "$why: installing $*"
    $as_root apt-get update -qq &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
        say "that failed; install $* yourself (going on without)"
}

missing() { # command package…: prints the package of every command that is not there
    while [ $# -gt 1 ]; do
        PATH="$PATH:/usr/sbin" command -v "$1" >/dev/null 2>&1 || printf '%s ' "$2"
        shift 2
    done
}

if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null; then
    say "$python is not Python 3.11, 3.12 or 3.13; call make with PYTHON=python3.12, or the like"
    exit 1
fi

if [ ! -x "$bin/python" ]; then
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
        install_packages "virtual environments" python3-venv
        "$python" -c 'import ensurepip' 2>/dev/null || { say "$python cannot make a virtual environment without python3-venv"; exit 1; }
    fi
    say "making .venv"
    "$python" -m venv .venv
fi

extras='heic'
[ "$purpose" = test ] && extras='dev'
stamp=".venv/.ffrt-$purpose-$(cksum <pyproject.toml | cut -d' ' -f1)"
if [ ! -e "$stamp" ]; then
    say "installing ffrt[$extras] into .venv"
    "$bin/python" -m pip install -q --disable-pip-version-check -e ".[$extras]"
    if ! "$bin/python" -c 'import cv2' 2>/dev/null; then
        install_packages "OpenCV" libgl1 libglib2.0-0
    fi
    "$bin/python" -c 'import cv2, av, onnxruntime'
    touch "$stamp"
fi

if [ "$purpose" = test ]; then
    packages=$(missing nginx nginx-light ffmpeg ffmpeg gcc gcc c++ g++)
    [ -n "$(ls /usr/lib/nginx/modules/ngx_rtmp_module.so 2>/dev/null)" ] || packages="$packages libnginx-mod-rtmp"
    [ -e /usr/include/stdio.h ] || packages="$packages libc6-dev"
    # shellcheck disable=SC2086
    [ -z "$(echo $packages)" ] || install_packages "the tests of streams, virtual cameras and kernels" $packages
fi

if [ "$purpose" = test ] && ! QT_QPA_PLATFORM=offscreen "$bin/python" -c 'from PySide6 import QtWidgets' 2>/dev/null; then
    install_packages "the tests of the window" libegl1 libgl1 libglib2.0-0 libxkbcommon0 libdbus-1-3 libfontconfig1 fonts-dejavu-core
fi
