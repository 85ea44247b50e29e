// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/cubinglobals.h"

#include <algorithm>
#include <cstring>
#include <elf.h>
#include <optional>

namespace klineage::gate::cuda {

namespace {

constexpr std::size_t mostBytes = std::size_t{64} << 20;

/// Reads with every offset checked.
class Reader
{
public:
    explicit Reader(std::span<const std::byte> bytes)
        : m_bytes(bytes)
    {}
    [[nodiscard]] std::optional<std::span<const std::byte>> piece(std::uint64_t offset,
                                                                  std::uint64_t size) const
    {
        if (offset > m_bytes.size() || size > m_bytes.size() - offset)
            return std::nullopt;
        return m_bytes.subspan(offset, size);
    }
    template <typename T>
    [[nodiscard]] std::optional<T> read(std::uint64_t offset) const
    {
        const auto bytes = piece(offset, sizeof(T));
        if (!bytes)
            return std::nullopt;
        T value;
        std::memcpy(&value, bytes->data(), sizeof(T));
        return value;
    }
    [[nodiscard]] std::optional<std::string> text(const Elf64_Shdr &table, std::uint64_t offset) const
    {
        const auto bytes = piece(table.sh_offset, table.sh_size);
        if (!bytes || offset >= bytes->size())
            return std::nullopt;
        const auto *begin = reinterpret_cast<const char *>(bytes->data()) + offset;
        return std::string(begin, ::strnlen(begin, bytes->size() - offset));
    }

private:
    std::span<const std::byte> m_bytes;
};

tl::unexpected<Error> broken()
{
    return fail(ErrorCode::InvalidInput,
                "Cannot read the compiled module: it is not a sound 64-bit ELF file.");
}

tl::unexpected<Error> tooLarge()
{
    return fail(
        ErrorCode::InvalidInput,
        "Its variables take more than 64 MiB. Memory is given as workspaces, which the plan asks for.");
}

/// What a kernel calls of the driver is no symbol of its module. Printing and failing leave nothing that it could find again; heaps (malloc(),
/// free(), __cuda_syscall_aligned_malloc() under whatever name) hand out memory that lasts from launch to launch, and that nobody sees.
Status checkCalled(const std::string &function)
{
    if (function == "vprintf" || function == "__assertfail")
        return {};
    if (function.find("malloc") != std::string::npos || function.find("free") != std::string::npos)
        return fail(ErrorCode::InvalidInput, "It takes memory from the device's heap, which is not "
                                             "offered: the plan asks for workspaces.");
    return fail(ErrorCode::InvalidInput,
                "It calls " + function + ", which is neither in it nor among what kernels may call.");
}

/// Constant memory is memory like any other to who has its address. Bank 3 has what the source declares; the others are the driver's and
/// the compiler's, and their symbols no variables.
bool isWritable(const std::string &section)
{
    return section == ".nv.global" || section == ".nv.global.init" || section == ".nv.constant3";
}

/// Where the loader puts addresses into a section: what is there differs from the file.
std::optional<std::vector<std::uint64_t>> relocationsIn(const Reader &reader,
                                                        const std::vector<Elf64_Shdr> &sections,
                                                        std::size_t target)
{
    std::vector<std::uint64_t> offsets;
    for (const Elf64_Shdr &table : sections) {
        if ((table.sh_type != SHT_REL && table.sh_type != SHT_RELA) || table.sh_info != target)
            continue;
        const std::uint64_t size = table.sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
        for (std::uint64_t at = 0; at + size <= table.sh_size; at += size) {
            const auto offset = reader.read<std::uint64_t>(table.sh_offset + at); // the first member of both
            if (!offset)
                return std::nullopt;
            offsets.push_back(*offset);
        }
    }
    return offsets;
}

std::optional<std::vector<Elf64_Shdr>> sectionsOf(const Reader &reader)
{
    const auto header = reader.read<Elf64_Ehdr>(0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0
        || header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB
        || header->e_shentsize != sizeof(Elf64_Shdr))
        return std::nullopt;
    std::vector<Elf64_Shdr> sections;
    for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
        const auto section = reader.read<Elf64_Shdr>(header->e_shoff + i * sizeof(Elf64_Shdr));
        if (!section)
            return std::nullopt;
        sections.push_back(*section);
    }
    if (header->e_shstrndx >= sections.size())
        return std::nullopt;
    return sections;
}

std::optional<std::vector<std::string>> sectionNames(const Reader &reader,
                                                     const std::vector<Elf64_Shdr> &sections)
{
    const Elf64_Shdr &table = sections[reader.read<Elf64_Ehdr>(0)->e_shstrndx];
    std::vector<std::string> names;
    for (const Elf64_Shdr &section : sections) {
        auto name = reader.text(table, section.sh_name);
        if (!name)
            return std::nullopt;
        names.push_back(std::move(*name));
    }
    return names;
}

/// The bytes that a symbol begins with; zeros in a section without content.
std::optional<std::vector<std::byte>> initialOf(const Reader &reader, const Elf64_Shdr &section,
                                                const Elf64_Sym &symbol)
{
    if (section.sh_type == SHT_NOBITS)
        return std::vector<std::byte>(symbol.st_size);
    if (symbol.st_value > section.sh_size || symbol.st_size > section.sh_size - symbol.st_value)
        return std::nullopt;
    const auto bytes = reader.piece(section.sh_offset + symbol.st_value, symbol.st_size);
    return bytes ? std::optional(std::vector<std::byte>(bytes->begin(), bytes->end())) : std::nullopt;
}

} // namespace

bool DeviceGlobal::unchanged(std::span<const std::byte> now) const
{
    if (now.size() != initial.size())
        return false;
    if (relocated.empty())
        return std::memcmp(now.data(), initial.data(), now.size()) == 0;
    std::vector<std::byte> loaded(now.begin(), now.end());
    for (const std::uint64_t offset : relocated) {
        const std::size_t bytes = std::min<std::size_t>(8, initial.size() - offset);
        std::memcpy(loaded.data() + offset, initial.data() + offset, bytes);
    }
    return loaded == initial;
}

Result<std::vector<DeviceGlobal>> globalsOf(std::span<const std::byte> cubin)
{
    const Reader reader(cubin);
    const auto sections = sectionsOf(reader);
    const auto names = sections ? sectionNames(reader, *sections) : std::nullopt;
    if (!names)
        return broken();
    const bool forDevice = reader.read<Elf64_Ehdr>(0)->e_machine == EM_CUDA; // not a test's own program
    std::vector<DeviceGlobal> globals;
    std::size_t total = 0;
    for (const Elf64_Shdr &table : *sections) {
        if (table.sh_type != SHT_SYMTAB)
            continue;
        if (table.sh_entsize != sizeof(Elf64_Sym) || table.sh_link >= sections->size())
            return broken();
        for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
            const auto symbol = reader.read<Elf64_Sym>(table.sh_offset + at);
            if (!symbol)
                return broken();
            if (forDevice && symbol->st_shndx == SHN_UNDEF && ELF64_ST_TYPE(symbol->st_info) == STT_FUNC) {
                const auto called = reader.text((*sections)[table.sh_link], symbol->st_name);
                if (auto checked = checkCalled(called.value_or("")); !checked)
                    return tl::unexpected(checked.error());
            }
            if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx >= sections->size()
                || !isWritable((*names)[symbol->st_shndx]) || symbol->st_size == 0)
                continue;
            if (symbol->st_size > mostBytes)
                return tooLarge();
            auto name = reader.text((*sections)[table.sh_link], symbol->st_name);
            auto initial = initialOf(reader, (*sections)[symbol->st_shndx], *symbol);
            if (!name || !initial)
                return broken();
            if ((total += initial->size()) > mostBytes)
                return tooLarge();
            const auto relocations = relocationsIn(reader, *sections, symbol->st_shndx);
            if (!relocations)
                return broken();
            DeviceGlobal global{std::move(*name), std::move(*initial), {}};
            for (const std::uint64_t offset : *relocations) {
                if (offset >= symbol->st_value && offset - symbol->st_value < symbol->st_size)
                    global.relocated.push_back(offset - symbol->st_value);
            }
            globals.push_back(std::move(global));
        }
    }
    return globals;
}

} // namespace klineage::gate::cuda
