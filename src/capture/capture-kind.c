/* SPDX-License-Identifier: Apache-2.0 */
/* Knows what people take for a capture of iostat -x: packed and recoded files, and what other programs print.
 * Pure. */

#include "capture-kind.h"

#include "tierprobe/cleanup.h"

#include <string.h>

/* ---- files ---- */

static const struct {
        const char *bytes;
        size_t size, offset;
        const char *sentence;
} heads[] = {
        { "\x1f\x8b", 2, 0, "The file is compressed with gzip: zcat FILE | tierprobe judge." },
        { "\x1f\x9d", 2, 0, "The file is compressed with compress: zcat FILE | tierprobe judge." },
        { "\xfd\x37zXZ", 5, 0, "The file is compressed with xz: xzcat FILE | tierprobe judge." },
        { "BZh", 3, 0, "The file is compressed with bzip2: bzcat FILE | tierprobe judge." },
        { "\x28\xb5\x2f\xfd", 4, 0, "The file is compressed with zstd: zstdcat FILE | tierprobe judge." },
        { "\x04\x22\x4d\x18", 4, 0, "The file is compressed with lz4: lz4cat FILE | tierprobe judge." },
        { "LZIP", 4, 0, "The file is compressed with lzip: lzip -dc FILE | tierprobe judge." },
        { "PK\x03\x04", 4, 0, "The file is a zip archive: unzip -p FILE | tierprobe judge." },
        { "7z\xbc\xaf\x27\x1c", 6, 0, "The file is a 7z archive: 7z x -so FILE | tierprobe judge." },
        { "Rar!", 4, 0, "The file is a rar archive. Unpack it, and judge what was in it." },
        { "ustar", 5, 257, "The file is a tar archive: tar -xOf FILE | tierprobe judge." },
        { "\xff\xfe\0\0", 4, 0, "The file is UTF-32: iconv -f UTF-32 -t UTF-8 FILE | tierprobe judge." },
        { "\xff\xfe", 2, 0, "The file is UTF-16: iconv -f UTF-16 -t UTF-8 FILE | tierprobe judge." },
        { "\xfe\xff", 2, 0, "The file is UTF-16: iconv -f UTF-16 -t UTF-8 FILE | tierprobe judge." },
        { "%PDF", 4, 0, "The file is a PDF document. Save the output of iostat as text, and judge that." },
        { "{\\rtf", 5, 0, "The file is an RTF document. Save it as plain text, and judge that." },
        { "\x89PNG", 4, 0, "The file is a picture. Save the output of iostat as text, and judge that." },
        { "\xff\xd8\xff", 3, 0, "The file is a picture. Save the output of iostat as text, and judge that." },
        { "GIF8", 4, 0, "The file is a picture. Save the output of iostat as text, and judge that." },
        { "\x7f"
          "ELF",
          4, 0, "The file is a program. Judge what iostat prints: iostat -xyz 1 > FILE." },
        /* struct file_magic of sysstat, in either order of bytes */
        { "\x96\xd5", 2, 0,
          "The file is sar's own data, which has no w_await. Capture with: iostat -xyz 1." },
        { "\xd5\x96", 2, 0,
          "The file is sar's own data, which has no w_await. Capture with: iostat -xyz 1." },
};

/* Text in which every other byte is 0, without a mark in front. */
static const char *kind_of_wide(const char *head, size_t size)
{
        size_t zeros[2] = { 0 };

        for (size_t i = 0; i < size; i++)
                zeros[i % 2] += head[i] == '\0';
        size_t half = size / 2;
        if (half < 8 ||
            !((zeros[0] >= half * 9 / 10 && zeros[1] == 0) || (zeros[1] >= half * 9 / 10 && zeros[0] == 0)))
                return NULL;
        return zeros[1] ? "The file is UTF-16: iconv -f UTF-16LE -t UTF-8 FILE | tierprobe judge."
                        : "The file is UTF-16: iconv -f UTF-16BE -t UTF-8 FILE | tierprobe judge.";
}

const char *kind_of_head(const char *head, size_t size)
{
        for (size_t i = 0; i < ELEMENTSOF(heads); i++)
                if (size >= heads[i].offset + heads[i].size &&
                    memcmp(head + heads[i].offset, heads[i].bytes, heads[i].size) == 0)
                        return heads[i].sentence;
        return kind_of_wide(head, size);
}

/* ---- programs ---- */

/* The first that fits is it; both texts stand in the line. */
static const struct {
        const char *text, *also;
        const char *what;
} lines[] = {
        { "DEV", "tps", "sar -d" },
        { "DEV;tps", "", "sadf" },
        { "# hostname;interval", "", "sadf" },
        { "bread/s", "bwrtn/s", "sar -b" },
        { "kB_rd/s", "kB_wr/s", "pidstat -d" },
        { "PID", "%usr", "pidstat" },
        { "CPU", "%usr", "mpstat" },
        { "CPU", "%user", "sar" },
        { "swpd", "buff", "vmstat" },
        { "procs -", "memory", "vmstat" },
        { "dsk/", "-", "dstat" },
        { "total-cpu-usage", "", "dstat" },
        { "total-usage", "dsk", "dstat" },
        { "mounted on", "nfs", "nfsiostat" },
        { "rpc bklog", "", "nfsiostat" },
        { "rMB_nor/s", "", "nfsiostat" },
        { "Tape:", "/s", "tapestat" },
        { "tm_act", "", "iostat of AIX" },
        { "KB/t", "tps", "iostat of macOS or FreeBSD" },
        { "kr/s", "kw/s", "iostat of Solaris or FreeBSD" },
        { "Mr/s", "Mw/s", "iostat of Solaris" },
        { "extended device statistics", "", "iostat of Solaris or FreeBSD" },
        { "sps", "msps", "iostat of HP-UX" },
        { "capacity", "bandwidth", "zpool iostat" },
        { "Space saving%", "", "vdostats" },
        { "DISK WRITE", "", "iotop" },
        { "ATOP - ", "", "atop" },
        { "MAJ:MIN", "", "lsblk" },
        { "load average", "", "top or uptime" },
        { "Mounted on", "Use%", "df" },
        { "fio-3.", "", "fio" },
        { "fio version", "", "fio" },
        { "rw=", "ioengine=", "fio" },
        { "IOPS=", "BW=", "fio" },
        { "bytes", "copied, ", "dd" },
        { "records in", "", "dd" },
        { "buffered disk reads", "", "hdparm" },
        { "\\\"disk_device\\\"", "", "a log that holds iostat's JSON as one string (jq -r takes it out)" },
        { "'disk_device'", "", "Python, which writes no JSON so (json.dumps does)" },
        { "iostat: command not found", "", "a shell that found no iostat (it is in the package sysstat)" },
        { "iostat: not found", "", "a shell that found no iostat (it is in the package sysstat)" },
        { "Usage: iostat", "", "iostat's help" },
        { "avg-cpu:", "%user", "iostat -c, or of iostat before its first report" },
};

const char *kind_of_line(const char *line, size_t size)
{
        for (size_t i = 0; i < ELEMENTSOF(lines); i++)
                if (memmem(line, size, lines[i].text, strlen(lines[i].text)) &&
                    memmem(line, size, lines[i].also, strlen(lines[i].also)))
                        return lines[i].what;
        return NULL;
}
