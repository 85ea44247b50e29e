// SPDX-License-Identifier: GPL-3.0-or-later
//
// What this system's static libstdc++ and libgcc ask of its C library and the one of the preset gpu-static does not have. With these the
// linker finds all the rest in the older one, so that the gate asks for no newer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <elf.h>
#include <link.h>
#include <unistd.h>

namespace {

/// struct dl_find_object of glibc 2.35, on x86-64.
struct FoundObject {
    unsigned long long flags;
    void *mapStart;
    void *mapEnd;
    link_map *linkMap;
    void *unwindTable; ///< PT_GNU_EH_FRAME
    unsigned long long reserved[7];
};

struct Search {
    std::uintptr_t address;
    FoundObject *found;
};

int isIn(dl_phdr_info *object, std::size_t, void *data)
{
    const auto *search = static_cast<const Search *>(data);
    FoundObject found{};
    bool holds = false;
    for (int i = 0; i < object->dlpi_phnum; ++i) {
        const ElfW(Phdr) &part = object->dlpi_phdr[i];
        const std::uintptr_t begin = object->dlpi_addr + part.p_vaddr;
        if (part.p_type == PT_GNU_EH_FRAME)
            found.unwindTable = reinterpret_cast<void *>(begin);
        if (part.p_type != PT_LOAD || search->address < begin || search->address - begin >= part.p_memsz)
            continue;
        holds = true;
        found.mapStart = reinterpret_cast<void *>(begin);
        found.mapEnd = reinterpret_cast<void *>(begin + part.p_memsz);
    }
    if (!holds || !found.unwindTable)
        return 0;
    *search->found = found;
    return 1;
}

} // namespace

extern "C" {

extern char __libc_single_threaded;
char __libc_single_threaded = 0; // never sure: counts of references are always atomic

unsigned int arc4random()
{
    unsigned int value = 0;
    if (::getentropy(&value, sizeof value) != 0)
        std::abort();
    return value;
}

/// For libgcc's unwinder: the table of whoever holds this address.
int _dl_find_object(void *address, FoundObject *found) noexcept
{
    Search search{reinterpret_cast<std::uintptr_t>(address), found};
    return ::dl_iterate_phdr(isIn, &search) == 1 ? 0 : -1;
}

unsigned long __isoc23_strtoul(const char *text, char **end, int base) noexcept
{
    return std::strtoul(text, end, base);
}
}
