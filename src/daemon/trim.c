/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that only the start needed: given back, so that an idle daemon is small. Touches this process alone.
 */

#include "trim.h"

#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Unmaps the pages of code and constants of one shared object. They are clean copies of the file and come
 * back when touched; the libraries' start-up code, most of what is resident, never is again. A segment that
 * can be written, or was before relocation (RELRO lies in the writable one), is not touched: its pages are
 * not clean. */
static int drop_clean_pages(struct dl_phdr_info *info, size_t size, void *userdata)
{
        uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);

        (void) size;
        (void) userdata;
        for (int i = 0; i < info->dlpi_phnum; i++) {
                const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

                if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W))
                        continue;
                uintptr_t start = (info->dlpi_addr + segment->p_vaddr + page - 1) / page * page;
                uintptr_t end = (info->dlpi_addr + segment->p_vaddr + segment->p_memsz) / page * page;

                if (start < end)
                        (void) madvise((void *) start, end - start, MADV_DONTNEED);
        }
        return 0;
}

void memory_trim(void)
{
        (void) malloc_trim(0);
        (void) dl_iterate_phdr(drop_clean_pages, NULL);
}
