// SPDX-License-Identifier: GPL-3.0-or-later
//
// oneDNN without its headers, in the versions 2 (Debian 12) and 3 (Debian 13). Version 2 describes an operation in a structure that
// the caller provides, and which is never looked into here, so that memory that is large enough will do; version 3 returns pointers.
#pragma once

#include "core/base/result.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace klineage::gate::dnnl {

/// As upstream, Debian 13 (which counts the interface's changes by itself) and Debian 12 name it.
inline constexpr std::array<const char *, 3> libraryNames{"libdnnl.so.3", "libdnnl.so.3.6", "libdnnl.so.2"};
inline constexpr const char *notInstalled =
    "there is no libdnnl.so.3 or .2. Install libdnnl3.6, libdnnl3 or libdnnl2, "
    "whichever the system has.";

struct LibraryVersion { // dnnl_version_t begins so
    int major;
    int minor;
    int patch;
};

struct Argument { // dnnl_exec_arg_t
    int argument;
    void *memory;
};

/// The library and the entry points that both versions have in the same form. Functions return oneDNN's status: 0 is success.
struct Library {
    void *handle = nullptr;
    const LibraryVersion *(*version)() = nullptr;
    int (*engineCreate)(void **engine, int kind, std::size_t index) = nullptr;
    int (*engineDestroy)(void *engine) = nullptr;
    int (*streamCreate)(void **stream, void *engine, unsigned flags) = nullptr;
    int (*streamWait)(void *stream) = nullptr;
    int (*streamDestroy)(void *stream) = nullptr;
    int (*primitiveCreate)(void **primitive, const void *primitiveDescriptor) = nullptr;
    int (*primitiveDestroy)(void *primitive) = nullptr;
    int (*primitiveDescriptorDestroy)(void *primitiveDescriptor) = nullptr;
    const void *(*primitiveDescriptorMemory)(const void *primitiveDescriptor, int what, int index) = nullptr;
    int (*reorderDescriptorCreate)(void **primitiveDescriptor, const void *from, void *fromEngine,
                                   const void *to, void *toEngine, const void *attributes) = nullptr;
    int (*primitiveExecute)(const void *primitive, void *stream, int count,
                            const Argument *arguments) = nullptr;
    int (*memoryCreate)(void **memory, const void *descriptor, void *engine, void *data) = nullptr;
    int (*memorySetHandle)(void *memory, void *data) = nullptr;
    int (*memoryDestroy)(void *memory) = nullptr;

    /// False when the library lacks it.
    template <typename Function>
    bool resolve(Function &function, const char *name) const
    {
        function = reinterpret_cast<Function>(symbol(name));
        return function != nullptr;
    }
    [[nodiscard]] bool isVersion3() const { return version()->major >= 3; }
    /// "onednn 2.6.0".
    [[nodiscard]] std::string name() const;

private:
    void *symbol(const char *name) const;
};

/// Loads the newest that is there, and lets it use that many threads. ErrorCode::Unavailable says what is missing.
[[nodiscard]] Result<Library> loadLibrary(int threads);

/// Room for a structure of version 2; they are below 3 KiB.
struct alignas(16) Structure {
    std::array<std::byte, 8192> bytes{};
};

/// Shape and layout of an f32 tensor. Not copied: version 2 points into it.
class MemoryDescriptor
{
public:
    explicit MemoryDescriptor(const Library &library)
        : m_library(library)
    {}
    ~MemoryDescriptor();
    MemoryDescriptor(const MemoryDescriptor &) = delete;
    MemoryDescriptor &operator=(const MemoryDescriptor &) = delete;

    /// At most 12 extents, outermost first, with the distance in elements between neighbours in each.
    [[nodiscard]] int describe(const std::vector<std::int64_t> &extents,
                               const std::vector<std::int64_t> &strides);
    /// In whatever layout the operation likes best.
    [[nodiscard]] int describeAny(const std::vector<std::int64_t> &extents);
    [[nodiscard]] const void *get() const { return m_pointer; }

private:
    Library m_library;
    Structure m_structure;     ///< version 2
    void *m_pointer = nullptr; ///< to it, or version 3's own
};

} // namespace klineage::gate::dnnl
