#!/usr/bin/env python3
"""Records the writes that Linux's ext2 sends to a disk when `dd` writes files of zeros and `sync` follows each.

    sudo python3 capture.py KERNEL DISK_BYTES BLOCK_BYTES PHASE:BYTES_PER_CALL:CALLS:PASSES ... > FILE.toml

KERNEL is a user-mode Linux with fs/ext2 (linux.uml of the Debian package user-mode-linux). The kernels of most
distributions mount ext2 with the driver of ext4, which did not exist at the time of the study and allocates in another
way. The disk of the user-mode Linux is a file, and tracefs of the host logs the writes to this file. A write of one
sector to a second disk ends each pass.
"""

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -t sysfs none /sys
echo 120 > /sys/block/ubda/queue/max_sectors_kb
mount -t tmpfs none /mnt
mkdir /mnt/card
mount -t ext2 /dev/ubda /mnt/card
sync
mark() { dd if=/dev/zero of=/dev/ubdb bs=512 count=1 oflag=direct 2> /dev/null; }
mark
while IFS=: read -r phase bytes calls passes; do
    for pass in $(seq $passes); do
        dd if=/dev/zero of=/mnt/card/$phase bs=$bytes count=$calls 2> /dev/null
        sync
        mark
    done
done < FOLDER/phases
poweroff -f
"""
MARK = (512, 0)
TRACE = Path("/sys/kernel/tracing")
EVENT = TRACE / "events/syscalls/sys_enter_pwrite64/enable"
WRITE = re.compile(r"linux\.uml.*sys_pwrite64\(.*count: (\w+), pos: (\w+)\)")


def log_of_writes(kernel, folder):
    """Starts the kernel and returns the lines of tracefs."""
    (TRACE / "buffer_size_kb").write_text("65536")
    (TRACE / "trace").write_text("")
    EVENT.write_text("1")
    # 512 MiB: a computer of 2007, as in sim/card/boards/linux-reader.toml.
    words = f"mem=512M root=hostfs rootfstype=hostfs rootflags=/ rw init={folder}/init con=null"
    words += f" ubd0={folder}/disk ubd1={folder}/mark"
    subprocess.run([kernel, *words.split()], stdin=subprocess.DEVNULL, stdout=sys.stderr)
    EVENT.write_text("0")
    return (TRACE / "trace").read_text().splitlines()


def passes_of(lines, block_bytes):
    """Returns the extents of each pass, in blocks. Joins adjacent writes: user-mode Linux splits requests."""
    passes = [[]]
    for match in filter(None, map(WRITE.search, lines)):
        length, offset = (int(text, 0) for text in match.groups())
        extents = passes[-1]
        if (length, offset) == MARK:
            passes.append([])
        elif length % 512 or offset % 512:
            continue  # Not the disk: a file of the host.
        elif extents and sum(extents[-1]) == offset:
            extents[-1][1] += length
        else:
            extents.append([offset, length])
    assert all(value % block_bytes == 0 for extents in passes for extent in extents for value in extent)
    in_blocks = [[[start // block_bytes, length // block_bytes] for start, length in extents] for extents in passes]
    return in_blocks[1:-1]  # Without mounting and the end.


def main():
    kernel, disk_bytes, block_bytes, *phases = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for name, length in [("disk", int(disk_bytes)), ("mark", 4096)]:
            with open(folder / name, "wb") as file:
                file.truncate(length)
        mkfs = ["mke2fs", "-q", "-F", "-t", "ext2", "-b", block_bytes, folder / "disk"]
        subprocess.run(mkfs, check=True)
        (folder / "phases").write_text("\n".join(phases) + "\n")
        (folder / "init").write_text(INIT.replace("FOLDER", str(folder)))
        (folder / "init").chmod(0o755)
        passes = iter(passes_of(log_of_writes(kernel, folder), int(block_bytes)))
    version = subprocess.run([kernel, "--version"], capture_output=True, text=True).stdout.strip()
    print(f"# python3 studies/ext2/capture.py linux.uml {' '.join(sys.argv[2:])}, with Linux {version}\n")
    print(f"block_bytes = {block_bytes}")
    for phase in phases:
        number, bytes_per_call, calls, count = phase.split(":")
        for _ in range(int(count)):
            print(f"\n[[pass]]\nphase = {number}\nbytes_per_call = {bytes_per_call}\ncalls = {calls}")
            extents = textwrap.fill(str(next(passes))[1:-1], 110, break_on_hyphens=False)
            print(f"extents = [\n{extents}\n]")


main()
