// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstring>
#include <elf.h>
#include <string>
#include <vector>

namespace klineage::test {

/// A file as small as a cubin can be: the variables `counter` (8 bytes, 7 and zeros) in .nv.global.init and `seen` (4 bytes) in
/// .nv.global, a table in .nv.constant3, and a function. Symbols before sections before names; section headers last.
inline std::string smallElf()
{
    const char sectionNames[] = "\0.nv.global.init\0.nv.global\0.nv.constant3\0.symtab\0.strtab";
    const char symbolNames[] = "\0counter\0seen\0table\0kernel";
    const auto place = [](const char *table, std::size_t bytes, const char *name) {
        for (std::size_t at = 0; at < bytes; ++at) {
            if ((at == 0 || table[at - 1] == '\0') && std::strcmp(table + at, name) == 0)
                return static_cast<Elf64_Word>(at);
        }
        return Elf64_Word{0};
    };
    std::string file(sizeof(Elf64_Ehdr), '\0');
    const auto append = [&file](const void *data, std::size_t bytes) {
        const std::size_t at = file.size();
        file.append(static_cast<const char *>(data), bytes);
        return static_cast<Elf64_Off>(at);
    };
    const auto section = [&](const char *name, Elf64_Word type, Elf64_Off offset, std::size_t bytes) {
        Elf64_Shdr header{};
        header.sh_name = place(sectionNames, sizeof sectionNames, name);
        header.sh_type = type;
        header.sh_offset = offset;
        header.sh_size = bytes;
        return header;
    };
    const auto symbol = [&](const char *name, unsigned char type, Elf64_Half index, std::size_t bytes) {
        Elf64_Sym entry{};
        entry.st_name = place(symbolNames, sizeof symbolNames, name);
        entry.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, type));
        entry.st_shndx = index;
        entry.st_size = bytes;
        return entry;
    };
    const char initial[8] = {7, 0, 0, 0, 0, 0, 0, 0};
    const char table[4] = {1, 2, 3, 4};
    const std::vector<Elf64_Sym> symbols = {{},
                                            symbol("counter", STT_OBJECT, 1, 8),
                                            symbol("seen", STT_OBJECT, 2, 4),
                                            symbol("table", STT_OBJECT, 3, 4),
                                            symbol("kernel", STT_FUNC, 1, 8)};
    std::vector<Elf64_Shdr> headers = {{}};
    headers.push_back(
        section(".nv.global.init", SHT_PROGBITS, append(initial, sizeof initial), sizeof initial));
    headers.push_back(section(".nv.global", SHT_NOBITS, 0, 4));
    headers.push_back(section(".nv.constant3", SHT_PROGBITS, append(table, sizeof table), sizeof table));
    headers.push_back(section(".symtab", SHT_SYMTAB,
                              append(symbols.data(), symbols.size() * sizeof(Elf64_Sym)),
                              symbols.size() * sizeof(Elf64_Sym)));
    headers.back().sh_entsize = sizeof(Elf64_Sym);
    headers.back().sh_link = 5;
    headers.push_back(
        section(".strtab", SHT_STRTAB, append(symbolNames, sizeof symbolNames), sizeof symbolNames));
    headers.push_back(
        section("", SHT_STRTAB, append(sectionNames, sizeof sectionNames), sizeof sectionNames));
    Elf64_Ehdr head{};
    std::memcpy(head.e_ident, ELFMAG, SELFMAG);
    head.e_ident[EI_CLASS] = ELFCLASS64;
    head.e_ident[EI_DATA] = ELFDATA2LSB;
    head.e_shoff = append(headers.data(), headers.size() * sizeof(Elf64_Shdr));
    head.e_shentsize = sizeof(Elf64_Shdr);
    head.e_shnum = static_cast<Elf64_Half>(headers.size());
    head.e_shstrndx = 6;
    std::memcpy(file.data(), &head, sizeof head);
    return file;
}

} // namespace klineage::test
