// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/references/onednnlibrary.h"

#include <algorithm>
#include <dlfcn.h>

namespace klineage::gate::dnnl {

namespace {

constexpr int dataTypeF32 = 3;                              // dnnl_f32
constexpr int formatAny = 1;                                // dnnl_format_tag_any
constexpr std::size_t maxDimensions = 12;                   // DNNL_MAX_NDIMS
using Dimensions = std::array<std::int64_t, maxDimensions>; // dnnl_dims_t

Dimensions toDimensions(const std::vector<std::int64_t> &values)
{
    Dimensions dimensions{};
    std::copy_n(values.begin(), std::min(values.size(), maxDimensions), dimensions.begin());
    return dimensions;
}

bool resolveAll(Library &library)
{
    return library.resolve(library.version, "dnnl_version")
           && library.resolve(library.engineCreate, "dnnl_engine_create")
           && library.resolve(library.engineDestroy, "dnnl_engine_destroy")
           && library.resolve(library.streamCreate, "dnnl_stream_create")
           && library.resolve(library.streamWait, "dnnl_stream_wait")
           && library.resolve(library.streamDestroy, "dnnl_stream_destroy")
           && library.resolve(library.primitiveCreate, "dnnl_primitive_create")
           && library.resolve(library.primitiveDestroy, "dnnl_primitive_destroy")
           && library.resolve(library.primitiveDescriptorDestroy, "dnnl_primitive_desc_destroy")
           && library.resolve(library.primitiveDescriptorMemory, "dnnl_primitive_desc_query_md")
           && library.resolve(library.reorderDescriptorCreate, "dnnl_reorder_primitive_desc_create")
           && library.resolve(library.primitiveExecute, "dnnl_primitive_execute")
           && library.resolve(library.memoryCreate, "dnnl_memory_create")
           && library.resolve(library.memorySetHandle, "dnnl_memory_set_data_handle")
           && library.resolve(library.memoryDestroy, "dnnl_memory_destroy");
}

} // namespace

void *Library::symbol(const char *name) const
{
    return ::dlsym(handle, name);
}

std::string Library::name() const
{
    const LibraryVersion *v = version();
    return "onednn " + std::to_string(v->major) + "." + std::to_string(v->minor) + "."
           + std::to_string(v->patch);
}

Result<Library> loadLibrary(int threads)
{
    Library library;
    for (const char *name : libraryNames) {
        if (!library.handle)
            library.handle = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (!library.handle)
        return fail(ErrorCode::Unavailable, std::string("Cannot load oneDNN: ") + notInstalled);
    if (!resolveAll(library))
        return fail(ErrorCode::Unavailable,
                    "Cannot use the installed oneDNN: it lacks a function. Versions 2 and 3 are supported.");
    // Debian's oneDNN runs on OpenMP; its number of threads is set there.
    void (*setThreads)(int) = nullptr;
    if (library.resolve(setThreads, "omp_set_num_threads"))
        setThreads(threads);
    return library;
}

MemoryDescriptor::~MemoryDescriptor()
{
    int (*destroy)(void *) = nullptr;
    if (m_pointer && m_pointer != &m_structure && m_library.resolve(destroy, "dnnl_memory_desc_destroy"))
        destroy(m_pointer);
}

int MemoryDescriptor::describe(const std::vector<std::int64_t> &extents,
                               const std::vector<std::int64_t> &strides)
{
    const Dimensions dims = toDimensions(extents);
    const Dimensions steps = toDimensions(strides);
    const auto count = static_cast<int>(extents.size());
    if (m_library.isVersion3()) {
        int (*create)(void **, int, const std::int64_t *, int, const std::int64_t *) = nullptr;
        if (!m_library.resolve(create, "dnnl_memory_desc_create_with_strides"))
            return -1;
        return create(&m_pointer, count, dims.data(), dataTypeF32, steps.data());
    }
    int (*init)(void *, int, const std::int64_t *, int, const std::int64_t *) = nullptr;
    if (!m_library.resolve(init, "dnnl_memory_desc_init_by_strides"))
        return -1;
    m_pointer = &m_structure;
    return init(m_pointer, count, dims.data(), dataTypeF32, steps.data());
}

int MemoryDescriptor::describeAny(const std::vector<std::int64_t> &extents)
{
    const Dimensions dims = toDimensions(extents);
    const auto count = static_cast<int>(extents.size());
    if (m_library.isVersion3()) {
        int (*create)(void **, int, const std::int64_t *, int, int) = nullptr;
        if (!m_library.resolve(create, "dnnl_memory_desc_create_with_tag"))
            return -1;
        return create(&m_pointer, count, dims.data(), dataTypeF32, formatAny);
    }
    int (*init)(void *, int, const std::int64_t *, int, int) = nullptr;
    if (!m_library.resolve(init, "dnnl_memory_desc_init_by_tag"))
        return -1;
    m_pointer = &m_structure;
    return init(m_pointer, count, dims.data(), dataTypeF32, formatAny);
}

} // namespace klineage::gate::dnnl
