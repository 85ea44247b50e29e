// SPDX-License-Identifier: GPL-3.0-or-later
//
// oneDNN's softmax through its C interface, without its headers: Debian 12 has version 2 (libdnnl.so.2), Debian 13 version 3
// (libdnnl.so.3), and distributions differ in what else they ship. Version 2 describes memory and operations by structures that
// the caller owns and the library alone fills and reads, so room that is larger than any of them is enough; version 3 returns
// pointers. The enumerators below have the same values in both.
#include "core/gate/references/cpureference.h"

#include <array>
#include <cstdint>
#include <dlfcn.h>

namespace klineage::gate {

namespace {

constexpr int engineCpu = 1;             // dnnl_cpu
constexpr int forwardInference = 96;     // dnnl_forward_inference
constexpr int dataTypeF32 = 3;           // dnnl_f32
constexpr int softmaxAccurate = 0x30000; // dnnl_softmax_accurate
constexpr int streamDefault = 1;         // dnnl_stream_default_flags
constexpr int argumentSource = 1;        // DNNL_ARG_SRC
constexpr int argumentDestination = 17;  // DNNL_ARG_DST
constexpr int maxDimensions = 12;        // DNNL_MAX_NDIMS

struct LibraryVersion { // dnnl_version_t begins so
    int major;
    int minor;
    int patch;
};

struct ExecutionArgument { // dnnl_exec_arg_t
    int argument;
    void *memory;
};

/// Room for version 2's dnnl_memory_desc_t and operation descriptors, which are below 3 KiB.
struct alignas(16) Descriptor {
    std::array<std::byte, 8192> bytes{};
};

template <typename Function>
bool resolve(void *library, Function &function, const char *name)
{
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

/// The entry points that both versions have in the same form.
struct Common {
    const LibraryVersion *(*version)() = nullptr;
    int (*engineCreate)(void **engine, int kind, std::size_t index) = nullptr;
    int (*engineDestroy)(void *engine) = nullptr;
    int (*streamCreate)(void **stream, void *engine, unsigned flags) = nullptr;
    int (*streamWait)(void *stream) = nullptr;
    int (*streamDestroy)(void *stream) = nullptr;
    int (*primitiveCreate)(void **primitive, const void *primitiveDescriptor) = nullptr;
    int (*primitiveDestroy)(void *primitive) = nullptr;
    int (*primitiveDescriptorDestroy)(void *primitiveDescriptor) = nullptr;
    int (*primitiveExecute)(const void *primitive, void *stream, int count,
                            const ExecutionArgument *arguments) = nullptr;
    int (*memoryCreate)(void **memory, const void *descriptor, void *engine, void *handle) = nullptr;
    int (*memorySetHandle)(void *memory, void *handle) = nullptr;
    int (*memoryDestroy)(void *memory) = nullptr;

    bool load(void *library)
    {
        return resolve(library, version, "dnnl_version")
               && resolve(library, engineCreate, "dnnl_engine_create")
               && resolve(library, engineDestroy, "dnnl_engine_destroy")
               && resolve(library, streamCreate, "dnnl_stream_create")
               && resolve(library, streamWait, "dnnl_stream_wait")
               && resolve(library, streamDestroy, "dnnl_stream_destroy")
               && resolve(library, primitiveCreate, "dnnl_primitive_create")
               && resolve(library, primitiveDestroy, "dnnl_primitive_destroy")
               && resolve(library, primitiveDescriptorDestroy, "dnnl_primitive_desc_destroy")
               && resolve(library, primitiveExecute, "dnnl_primitive_execute")
               && resolve(library, memoryCreate, "dnnl_memory_create")
               && resolve(library, memorySetHandle, "dnnl_memory_set_data_handle")
               && resolve(library, memoryDestroy, "dnnl_memory_destroy");
    }
};

class Softmax : public CpuReference
{
public:
    Softmax(const Common &dnnl, int threads)
        : m_dnnl(dnnl)
        , m_threads(threads)
    {}
    ~Softmax() override
    {
        for (void *memory : {m_in, m_out}) {
            if (memory)
                m_dnnl.memoryDestroy(memory);
        }
        if (m_primitive)
            m_dnnl.primitiveDestroy(m_primitive);
        if (m_stream)
            m_dnnl.streamDestroy(m_stream);
        if (m_engine)
            m_dnnl.engineDestroy(m_engine);
    }
    /// 0 when everything was made; oneDNN's status otherwise.
    int prepare(void *library, std::int64_t rows, std::int64_t columns);
    Status run(const HostBuffers &buffers) override;
    std::string version() const override
    {
        const LibraryVersion *v = m_dnnl.version();
        return "onednn " + std::to_string(v->major) + "." + std::to_string(v->minor) + "."
               + std::to_string(v->patch) + " (" + std::to_string(m_threads) + " threads)";
    }

private:
    int describeV2(void *library, const std::int64_t *dims, const std::int64_t *strides,
                   void **primitiveDescriptor);
    int describeV3(void *library, const std::int64_t *dims, const std::int64_t *strides,
                   void **primitiveDescriptor);
    int createMemories(const void *memoryDescriptor);

    Common m_dnnl;
    int m_threads;
    void *m_engine = nullptr;
    void *m_stream = nullptr;
    void *m_primitive = nullptr;
    void *m_in = nullptr;
    void *m_out = nullptr;
};

int Softmax::createMemories(const void *memoryDescriptor)
{
    if (const int status = m_dnnl.memoryCreate(&m_in, memoryDescriptor, m_engine, nullptr))
        return status;
    return m_dnnl.memoryCreate(&m_out, memoryDescriptor, m_engine, nullptr);
}

int Softmax::describeV2(void *library, const std::int64_t *dims, const std::int64_t *strides,
                        void **primitiveDescriptor)
{
    int (*initByStrides)(void *, int, const std::int64_t *, int, const std::int64_t *) = nullptr;
    int (*initSoftmax)(void *, int, const void *, int) = nullptr;
    int (*create)(void **, const void *, const void *, void *, const void *) = nullptr;
    if (!resolve(library, initByStrides, "dnnl_memory_desc_init_by_strides")
        || !resolve(library, initSoftmax, "dnnl_softmax_forward_desc_init")
        || !resolve(library, create, "dnnl_primitive_desc_create"))
        return -1;
    Descriptor memory;
    Descriptor operation;
    if (const int status = initByStrides(&memory, 2, dims, dataTypeF32, strides))
        return status;
    if (const int status = initSoftmax(&operation, forwardInference, &memory, 1))
        return status;
    if (const int status = create(primitiveDescriptor, &operation, nullptr, m_engine, nullptr))
        return status;
    return createMemories(&memory);
}

int Softmax::describeV3(void *library, const std::int64_t *dims, const std::int64_t *strides,
                        void **primitiveDescriptor)
{
    int (*createByStrides)(void **, int, const std::int64_t *, int, const std::int64_t *) = nullptr;
    int (*create)(void **, void *, int, int, const void *, const void *, int, const void *) = nullptr;
    int (*destroy)(void *) = nullptr;
    if (!resolve(library, createByStrides, "dnnl_memory_desc_create_with_strides")
        || !resolve(library, create, "dnnl_softmax_forward_primitive_desc_create")
        || !resolve(library, destroy, "dnnl_memory_desc_destroy"))
        return -1;
    void *memory = nullptr;
    if (const int status = createByStrides(&memory, 2, dims, dataTypeF32, strides))
        return status;
    int status =
        create(primitiveDescriptor, m_engine, forwardInference, softmaxAccurate, memory, memory, 1, nullptr);
    if (status == 0)
        status = createMemories(memory);
    destroy(memory);
    return status;
}

int Softmax::prepare(void *library, std::int64_t rows, std::int64_t columns)
{
    const std::array<std::int64_t, maxDimensions> dims{rows, columns};
    const std::array<std::int64_t, maxDimensions> strides{columns, 1};
    void *primitiveDescriptor = nullptr;
    int status = m_dnnl.engineCreate(&m_engine, engineCpu, 0);
    if (status == 0)
        status = m_dnnl.streamCreate(&m_stream, m_engine, streamDefault);
    if (status == 0)
        status = m_dnnl.version()->major >= 3
                     ? describeV3(library, dims.data(), strides.data(), &primitiveDescriptor)
                     : describeV2(library, dims.data(), strides.data(), &primitiveDescriptor);
    if (status == 0)
        status = m_dnnl.primitiveCreate(&m_primitive, primitiveDescriptor);
    if (primitiveDescriptor)
        m_dnnl.primitiveDescriptorDestroy(primitiveDescriptor);
    return status;
}

Status Softmax::run(const HostBuffers &buffers)
{
    m_dnnl.memorySetHandle(m_in, buffers.at("in"));
    m_dnnl.memorySetHandle(m_out, buffers.at("out"));
    const std::array<ExecutionArgument, 2> arguments{{{argumentSource, m_in}, {argumentDestination, m_out}}};
    int status =
        m_dnnl.primitiveExecute(m_primitive, m_stream, static_cast<int>(arguments.size()), arguments.data());
    if (status == 0)
        status = m_dnnl.streamWait(m_stream);
    if (status != 0)
        return fail(ErrorCode::Internal,
                    "oneDNN failed to run softmax: status " + std::to_string(status) + ".");
    return {};
}

Result<void *> openLibrary()
{
    for (const char *name : {"libdnnl.so.3", "libdnnl.so.2"}) {
        if (void *library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL))
            return library;
    }
    return fail(ErrorCode::Unavailable,
                "Cannot load oneDNN (libdnnl.so.3 or libdnnl.so.2): it is not installed. Install libdnnl3 or "
                "libdnnl2, whichever the system has.");
}

/// Debian's oneDNN runs on OpenMP; its number of threads is set there.
void setOpenMpThreads(void *library, int threads)
{
    void (*set)(int) = nullptr;
    if (resolve(library, set, "omp_set_num_threads"))
        set(threads);
}

} // namespace

Result<std::unique_ptr<CpuReference>> makeOneDnnReference(const ReferenceCall &call, int threads)
{
    if (call.op != "softmax")
        return fail(ErrorCode::InvalidInput,
                    "Cannot call onednn: it has no \"" + call.op + "\" here; expected softmax.");
    if (auto roles = requireRoles(call, {"in", "out"}); !roles)
        return tl::unexpected(roles.error());
    const auto rows = sizeOf(call, "rows");
    const auto columns = sizeOf(call, "cols");
    if (!rows || !columns)
        return tl::unexpected(!rows ? rows.error() : columns.error());
    const auto library = openLibrary();
    if (!library)
        return tl::unexpected(library.error());
    Common dnnl;
    if (!dnnl.load(*library))
        return fail(ErrorCode::Unavailable,
                    "Cannot use the installed oneDNN: it lacks a function. Versions 2 and 3 are supported.");
    setOpenMpThreads(*library, threads);
    auto softmax = std::make_unique<Softmax>(dnnl, threads);
    if (const int status = softmax->prepare(*library, *rows, *columns))
        return fail(ErrorCode::Unavailable,
                    "Cannot prepare softmax in oneDNN: status " + std::to_string(status) + ".");
    return std::unique_ptr<CpuReference>(std::move(softmax));
}

} // namespace klineage::gate
