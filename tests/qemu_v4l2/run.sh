#!/bin/bash
# Run a Python script where real video devices exist: in an emulated machine (QEMU) with v4l2loopback and vivid loaded.
#
# Proves what no stand-in can: a virtual camera of the real driver, opened by pyvirtualcam and read back as other programs
# would. Needs no kernel modules, no KVM and no video device on the machine itself. The guest sees this machine's files
# read-only, so the script and the virtual environment are used as they are.
#
#   run.sh CACHE VENV SCRIPT [ARGUMENT...]        as root on Debian 12, amd64
#
# In the guest: /dev/video0 and /dev/video1 are v4l2loopback devices, /dev/video10 is a camera with a test picture (vivid);
# /run and /dev/shm are writable, all else is not. The script starts in the current folder.
# Environment: OUT=FOLDER   a folder of this machine that the guest may write, as $OUT there
#              LIMIT=240    seconds until the guest is stopped
#              ACCEL=tcg    or kvm, where it works (not tried)
#              CPUS=2 MEMORY=2048
# Prints timings and what the script prints. Exit status: the script's; 124 if the guest ended without one.
# The first run installs qemu-system-x86, linux-headers, gcc, make, cpio and kmod with apt, downloads Debian's kernel image,
# v4l2loopback source and busybox (about 110 MB in all), and leaves a kernel and an initramfs (10 MB) in CACHE.
# Later runs need neither the network nor apt. Python runs ten to thirty times slower than outside.
set -euo pipefail

if [ $# -lt 3 ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  exit 64
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
cache=$(cd "$1" && pwd)
venv=$(cd "$2" && pwd)
script=$(realpath "$3")
shift 3

began=$EPOCHREALTIME
say() { printf '[%6.1f s] %s\n' "$(echo "$EPOCHREALTIME $began" | awk '{ print $1 - $2 }')" "$*"; }

prepare() {
  export DEBIAN_FRONTEND=noninteractive
  apt-cache show linux-image-amd64 v4l2loopback-dkms > /dev/null 2>&1 || apt-get update -qq
  local kernel work root image
  kernel=$(apt-cache depends linux-image-amd64 | sed -n 's/.*Depends: linux-image-\([0-9].*-amd64\)$/\1/p')
  say "kernel $kernel: packages"
  apt-get install -qq -y --no-install-recommends qemu-system-x86 "linux-headers-$kernel" gcc make cpio kmod > "$cache/apt.log" 2>&1

  work=$(mktemp -d "$cache/work.XXXX")
  root=$work/root image=$work/image
  mkdir "$work/debs"
  (cd "$work/debs" && apt-get download -qq -o APT::Sandbox::User=root \
    "linux-image-$kernel" v4l2loopback-dkms busybox-static)
  for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$root"; done

  say "v4l2loopback: build"
  local source=("$root"/usr/src/v4l2loopback-*)
  make -s -C "/usr/src/linux-headers-$kernel" M="${source[0]}" modules > "$cache/build.log" 2>&1
  mkdir "$root/lib/modules/$kernel/extra"
  cp "${source[0]}/v4l2loopback.ko" "$root/lib/modules/$kernel/extra/"
  depmod -b "$root" "$kernel"

  say "initramfs"
  mkdir -p "$image"/{bin,dev,proc,sys,mnt}
  cp "$root/bin/busybox" "$image/bin/"
  ln -s busybox "$image/bin/sh"
  install -m 755 "$here/init" "$image/init"
  for module in virtio_pci 9pnet_virtio 9p v4l2loopback vivid; do
    modprobe -d "$root" -S "$kernel" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | sort -u | while read -r file; do
    install -D -m 644 "$file" "$image/${file#"$root"/}"
  done
  cp "$root/lib/modules/$kernel"/modules.{order,builtin,builtin.modinfo} "$image/lib/modules/$kernel/"
  depmod -b "$image" "$kernel"
  (cd "$image" && find . | cpio -o -H newc --quiet | gzip) > "$work/base.gz"
  cp "$root/boot/vmlinuz-$kernel" "$work/vmlinuz"
  mv "$work/base.gz" "$work/vmlinuz" "$cache/"
  rm -rf "$work"
}

# init is part of the cached image
if [ ! -f "$cache/vmlinuz" ] || [ ! -f "$cache/base.gz" ] || [ "$here/init" -nt "$cache/base.gz" ]; then prepare; fi

# What to run goes into a second archive, appended to the first; the kernel unpacks both.
job=$(mktemp -d)
trap 'rm -rf "$job"' EXIT
mkdir "$job/image"
{
  echo "cd ${PWD@Q} || exit 126"
  echo 'export PATH=/usr/local/bin:/usr/bin:/bin HOME=/run TMPDIR=/run PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1'
  echo 'export OUT=/run/out'
  echo "exec ${venv@Q}/bin/python ${script@Q} ${*@Q}"
} > "$job/image/job"
(cd "$job/image" && echo job | cpio -o -H newc --quiet | gzip) > "$job/job.gz"
cat "$cache/base.gz" "$job/job.gz" > "$job/initrd"

share() { echo "local,path=$2,mount_tag=$1,security_model=none,multidevs=remap$3"; }
shares=(-virtfs "$(share root / ,readonly=on)")
if [ -n "${OUT:-}" ]; then
  mkdir -p "$OUT"
  shares+=(-virtfs "$(share out "$(cd "$OUT" && pwd)" "")")
fi

say "boot"
log=$cache/console.log
timeout "${LIMIT:-240}" qemu-system-x86_64 -accel "${ACCEL:-tcg}" -cpu max -m "${MEMORY:-2048}" -smp "${CPUS:-2}" \
  -nodefaults -display none -serial stdio -no-reboot -kernel "$cache/vmlinuz" -initrd "$job/initrd" \
  -append "console=ttyS0 quiet panic=-1 nokaslr" "${shares[@]}" < /dev/null 2> "$cache/qemu.log" |
  tee "$log" | sed -u 's/\r//g' | awk '/^GUEST_EXIT=/ { on = 0 } on { print; fflush() } /^GUEST_READY/ { on = 1 }' || true

ready=$(sed -n 's/^GUEST_READY \([0-9.]*\).*/\1/p' "$log")
ended=$(sed -n 's/^GUEST_EXIT=[0-9]* \([0-9.]*\).*/\1/p' "$log")
status=$(sed -n 's/^GUEST_EXIT=\([0-9]*\).*/\1/p' "$log")
if [ -z "$status" ]; then
  say "the guest ended without a result; the end of $log and $cache/qemu.log:"
  tail -n 15 "$log" "$cache/qemu.log"
  exit 124
fi
say "script ended with $status; in guest time: ready after $ready s, over at $ended s"
exit "$status"
