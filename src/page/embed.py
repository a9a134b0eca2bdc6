#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a C file of the page's files: embed.py OUTPUT NAME=PATH... Each goes in as it is and compressed, for the same
inputs always the same bytes."""
import gzip
import hashlib
import pathlib
import sys

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def array(name, data):
    lines = [", ".join(str(byte) for byte in data[at:at + 24]) for at in range(0, len(data), 24)]
    return f"static const unsigned char {name}[] = {{ {','.join(chr(10) + line for line in lines)} }};\n"


def main():
    output, *files = sys.argv[1:]
    text = ['/* The files of the page, made by embed.py. */\n#include "tierprobe/page.h"\n']
    rows = []
    for i, (name, path) in enumerate(file.split("=", 1) for file in files):
        data = pathlib.Path(path).read_bytes()
        packed = gzip.compress(data, 9, mtime=0)
        etag = hashlib.sha256(data).hexdigest()[:16]
        text += [array(f"data_{i}", data), array(f"gzip_{i}", packed)]
        rows.append(f'        {{ "{name}", "{TYPES[pathlib.Path(name).suffix]}", data_{i}, gzip_{i}, sizeof data_{i}, '
                    f'sizeof gzip_{i}, "\\"{etag}\\"" }},\n')
    text.append(f"const PageFile page_files[] = {{\n{''.join(rows)}}};\nconst size_t n_page_files = {len(rows)};\n")
    pathlib.Path(output).write_text("".join(text))


main()
