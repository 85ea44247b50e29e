// SPDX-License-Identifier: GPL-3.0-or-later
//
// Softmax, layer normalization and convolution of oneDNN, each in both of its versions. The enumerators below have the same values in
// both, but for the flags of normalizations.
#include "core/device/references/cpureference.h"
#include "core/device/references/onednnlibrary.h"

#include <array>
#include <tuple>
#include <vector>

namespace klineage::gate {

namespace {

constexpr int engineCpu = 1;             // dnnl_cpu
constexpr int streamDefault = 1;         // dnnl_stream_default_flags
constexpr int forwardInference = 96;     // dnnl_forward_inference
constexpr int softmaxAccurate = 0x30000; // dnnl_softmax_accurate
constexpr int convolutionDirect = 1;     // dnnl_convolution_direct
constexpr int queryWeights = 131;        // dnnl_query_weights_md
constexpr int argumentSource = 1;        // DNNL_ARG_SRC
constexpr int argumentDestination = 17;  // DNNL_ARG_DST
constexpr int argumentWeights = 33;      // DNNL_ARG_WEIGHTS
constexpr int argumentScale = 51;        // DNNL_ARG_SCALE
constexpr int argumentShift = 52;        // DNNL_ARG_SHIFT
constexpr float layerNormEpsilon = 1e-5f;
constexpr int missingFunction = -1; // beside oneDNN's own statuses

/// Primitives that are executed one after another on a call's buffers.
class Primitives : public CpuReference
{
public:
    Primitives(const dnnl::Library &library, std::string op, int threads)
        : m_library(library)
        , m_op(std::move(op))
        , m_threads(threads)
    {}
    ~Primitives() override;
    Status run(const HostBuffers &buffers) override;
    std::string version() const override
    {
        return m_library.name() + " (" + std::to_string(m_threads) + " threads)";
    }

    // All of these return oneDNN's status.
    int open();
    /// Memory that each run points at the buffer of this role.
    int bind(const char *role, const dnnl::MemoryDescriptor &descriptor, void **memory);
    /// Memory of its own.
    int allocate(const void *descriptor, void **memory);
    /// Takes the primitive descriptor.
    int append(void *primitiveDescriptor, std::vector<dnnl::Argument> arguments);

    [[nodiscard]] const dnnl::Library &library() const { return m_library; }
    [[nodiscard]] void *engine() const { return m_engine; }

private:
    struct Step {
        void *primitive;
        std::vector<dnnl::Argument> arguments;
    };
    dnnl::Library m_library;
    std::string m_op;
    int m_threads;
    void *m_engine = nullptr;
    void *m_stream = nullptr;
    std::vector<Step> m_steps;
    std::vector<void *> m_memories;
    std::vector<std::pair<std::string, void *>> m_bound; ///< role, memory
};

Primitives::~Primitives()
{
    for (const Step &step : m_steps)
        m_library.primitiveDestroy(step.primitive);
    for (void *memory : m_memories)
        m_library.memoryDestroy(memory);
    if (m_stream)
        m_library.streamDestroy(m_stream);
    if (m_engine)
        m_library.engineDestroy(m_engine);
}

int Primitives::open()
{
    const int status = m_library.engineCreate(&m_engine, engineCpu, 0);
    return status ? status : m_library.streamCreate(&m_stream, m_engine, streamDefault);
}

int Primitives::bind(const char *role, const dnnl::MemoryDescriptor &descriptor, void **memory)
{
    const int status = m_library.memoryCreate(memory, descriptor.get(), m_engine, nullptr);
    if (status)
        return status;
    m_memories.push_back(*memory);
    m_bound.emplace_back(role, *memory);
    return 0;
}

int Primitives::allocate(const void *descriptor, void **memory)
{
    void *const ownMemory = reinterpret_cast<void *>(SIZE_MAX); // DNNL_MEMORY_ALLOCATE
    const int status = m_library.memoryCreate(memory, descriptor, m_engine, ownMemory);
    if (status == 0)
        m_memories.push_back(*memory);
    return status;
}

int Primitives::append(void *primitiveDescriptor, std::vector<dnnl::Argument> arguments)
{
    void *primitive = nullptr;
    const int status = m_library.primitiveCreate(&primitive, primitiveDescriptor);
    m_library.primitiveDescriptorDestroy(primitiveDescriptor);
    if (status == 0)
        m_steps.push_back({primitive, std::move(arguments)});
    return status;
}

Status Primitives::run(const HostBuffers &buffers)
{
    for (const auto &[role, memory] : m_bound)
        m_library.memorySetHandle(memory, buffers.at(role));
    int status = 0;
    for (const Step &step : m_steps) {
        if (status == 0)
            status = m_library.primitiveExecute(
                step.primitive, m_stream, static_cast<int>(step.arguments.size()), step.arguments.data());
    }
    if (status == 0)
        status = m_library.streamWait(m_stream);
    if (status != 0)
        return fail(ErrorCode::Internal,
                    "oneDNN failed to run " + m_op + ": status " + std::to_string(status) + ".");
    return {};
}

/// Version 2: an operation's structure to a primitive descriptor.
int describeOperation(const Primitives &primitives, const dnnl::Structure &operation,
                      void **primitiveDescriptor)
{
    int (*create)(void **, const void *, const void *, void *, const void *) = nullptr;
    if (!primitives.library().resolve(create, "dnnl_primitive_desc_create"))
        return missingFunction;
    return create(primitiveDescriptor, &operation, nullptr, primitives.engine(), nullptr);
}

int describeSoftmax(const Primitives &primitives, const void *rows, void **primitiveDescriptor)
{
    const dnnl::Library &library = primitives.library();
    if (library.isVersion3()) {
        int (*create)(void **, void *, int, int, const void *, const void *, int, const void *) = nullptr;
        if (!library.resolve(create, "dnnl_softmax_forward_primitive_desc_create"))
            return missingFunction;
        return create(primitiveDescriptor, primitives.engine(), forwardInference, softmaxAccurate, rows, rows,
                      1, nullptr);
    }
    int (*init)(void *, int, const void *, int) = nullptr;
    if (!library.resolve(init, "dnnl_softmax_forward_desc_init"))
        return missingFunction;
    dnnl::Structure operation;
    const int status = init(&operation, forwardInference, rows, 1);
    return status ? status : describeOperation(primitives, operation, primitiveDescriptor);
}

int describeLayerNorm(const Primitives &primitives, const void *rows, void **primitiveDescriptor)
{
    const dnnl::Library &library = primitives.library();
    if (library.isVersion3()) {
        constexpr unsigned scaleAndShift = 0x2 | 0x4; // dnnl_use_scale, dnnl_use_shift
        int (*create)(void **, void *, int, const void *, const void *, const void *, float, unsigned,
                      const void *) = nullptr;
        if (!library.resolve(create, "dnnl_layer_normalization_forward_primitive_desc_create"))
            return missingFunction;
        return create(primitiveDescriptor, primitives.engine(), forwardInference, rows, rows, nullptr,
                      layerNormEpsilon, scaleAndShift, nullptr);
    }
    constexpr unsigned scaleAndShift = 0x8 | 0x10; // the same two in version 2
    int (*init)(void *, int, const void *, const void *, float, unsigned) = nullptr;
    if (!library.resolve(init, "dnnl_layer_normalization_forward_desc_init"))
        return missingFunction;
    dnnl::Structure operation;
    const int status = init(&operation, forwardInference, rows, nullptr, layerNormEpsilon, scaleAndShift);
    return status ? status : describeOperation(primitives, operation, primitiveDescriptor);
}

/// Stride 1, a border of one zero on every side.
int describeConvolution(const Primitives &primitives, const void *in, const void *weight, const void *out,
                        void **primitiveDescriptor)
{
    const std::array<std::int64_t, 12> ones{1, 1};
    const std::array<std::int64_t, 12> zeros{};
    const dnnl::Library &library = primitives.library();
    if (library.isVersion3()) {
        int (*create)(void **, void *, int, int, const void *, const void *, const void *, const void *,
                      const std::int64_t *, const std::int64_t *, const std::int64_t *, const std::int64_t *,
                      const void *) = nullptr;
        if (!library.resolve(create, "dnnl_convolution_forward_primitive_desc_create"))
            return missingFunction;
        return create(primitiveDescriptor, primitives.engine(), forwardInference, convolutionDirect, in,
                      weight, nullptr, out, ones.data(), zeros.data(), ones.data(), ones.data(), nullptr);
    }
    int (*init)(void *, int, int, const void *, const void *, const void *, const void *,
                const std::int64_t *, const std::int64_t *, const std::int64_t *) = nullptr;
    if (!library.resolve(init, "dnnl_convolution_forward_desc_init"))
        return missingFunction;
    dnnl::Structure operation;
    const int status = init(&operation, forwardInference, convolutionDirect, in, weight, nullptr, out,
                            ones.data(), ones.data(), ones.data());
    return status ? status : describeOperation(primitives, operation, primitiveDescriptor);
}

using Sizes = std::vector<std::int64_t>;

int prepareSoftmax(Primitives &primitives, const Sizes &sizes)
{
    dnnl::MemoryDescriptor rows(primitives.library());
    void *in = nullptr;
    void *out = nullptr;
    void *descriptor = nullptr;
    int status = rows.describe(sizes, {sizes[1], 1});
    if (status == 0)
        status = primitives.bind("in", rows, &in);
    if (status == 0)
        status = primitives.bind("out", rows, &out);
    if (status == 0)
        status = describeSoftmax(primitives, rows.get(), &descriptor);
    if (status == 0)
        status = primitives.append(descriptor, {{argumentSource, in}, {argumentDestination, out}});
    return status;
}

int prepareLayerNorm(Primitives &primitives, const Sizes &sizes)
{
    dnnl::MemoryDescriptor rows(primitives.library());
    dnnl::MemoryDescriptor columns(primitives.library());
    void *in = nullptr;
    void *gamma = nullptr;
    void *beta = nullptr;
    void *out = nullptr;
    void *descriptor = nullptr;
    int status = rows.describe(sizes, {sizes[1], 1});
    if (status == 0)
        status = columns.describe({sizes[1]}, {1});
    if (status == 0)
        status = primitives.bind("in", rows, &in);
    if (status == 0)
        status = primitives.bind("gamma", columns, &gamma);
    if (status == 0)
        status = primitives.bind("beta", columns, &beta);
    if (status == 0)
        status = primitives.bind("out", rows, &out);
    if (status == 0)
        status = describeLayerNorm(primitives, rows.get(), &descriptor);
    if (status == 0)
        status = primitives.append(descriptor, {{argumentSource, in},
                                                {argumentScale, gamma},
                                                {argumentShift, beta},
                                                {argumentDestination, out}});
    return status;
}

/// Weights in the layout that the convolution likes best, which costs a copy of them in every run.
int appendWeightCopy(Primitives &primitives, const dnnl::MemoryDescriptor &plain, void *from,
                     const void *wanted, void **weight)
{
    void *descriptor = nullptr;
    int status = primitives.allocate(wanted, weight);
    if (status == 0)
        status = primitives.library().reorderDescriptorCreate(&descriptor, plain.get(), primitives.engine(),
                                                              wanted, primitives.engine(), nullptr);
    if (status == 0)
        status = primitives.append(descriptor, {{argumentSource, from}, {argumentDestination, *weight}});
    return status;
}

/// The extents are written in oneDNN's order (image, channel, row, column; filter, channel, row, column), the strides say where they
/// lie: channels innermost, filters innermost.
int prepareConvolution(Primitives &primitives, const Sizes &sizes)
{
    const auto [n, h, w, c, f] = std::tuple{sizes[0], sizes[1], sizes[2], sizes[3], sizes[4]};
    dnnl::MemoryDescriptor data(primitives.library());
    dnnl::MemoryDescriptor plainWeight(primitives.library());
    dnnl::MemoryDescriptor anyWeight(primitives.library());
    dnnl::MemoryDescriptor result(primitives.library());
    void *in = nullptr;
    void *givenWeight = nullptr;
    void *weight = nullptr;
    void *out = nullptr;
    void *descriptor = nullptr;
    int status = data.describe({n, c, h, w}, {h * w * c, 1, w * c, c});
    if (status == 0)
        status = plainWeight.describe({f, c, 3, 3}, {1, f, 3 * c * f, c * f});
    if (status == 0)
        status = anyWeight.describeAny({f, c, 3, 3});
    if (status == 0)
        status = result.describe({n, f, h, w}, {h * w * f, 1, w * f, f});
    if (status == 0)
        status = primitives.bind("data", data, &in);
    if (status == 0)
        status = primitives.bind("weight", plainWeight, &givenWeight);
    if (status == 0)
        status = primitives.bind("out", result, &out);
    if (status == 0)
        status = describeConvolution(primitives, data.get(), anyWeight.get(), result.get(), &descriptor);
    if (status == 0)
        status = appendWeightCopy(primitives, plainWeight, givenWeight,
                                  primitives.library().primitiveDescriptorMemory(descriptor, queryWeights, 0),
                                  &weight);
    if (status == 0)
        status = primitives.append(
            descriptor, {{argumentSource, in}, {argumentWeights, weight}, {argumentDestination, out}});
    else if (descriptor)
        primitives.library().primitiveDescriptorDestroy(descriptor);
    return status;
}

struct Operator {
    const char *name;
    std::vector<std::string> roles;
    std::vector<std::string> sizes;
    int (*prepare)(Primitives &primitives, const Sizes &sizes);
};

const Operator *findOperator(const std::string &name)
{
    static const std::array<Operator, 3> operators{{
        {"softmax", {"in", "out"}, {"rows", "cols"}, prepareSoftmax},
        {"layernorm", {"in", "gamma", "beta", "out"}, {"rows", "cols"}, prepareLayerNorm},
        {"conv2d_nhwc", {"data", "weight", "out"}, {"n", "h", "w", "c", "f"}, prepareConvolution},
    }};
    for (const Operator &candidate : operators) {
        if (candidate.name == name)
            return &candidate;
    }
    return nullptr;
}

} // namespace

Result<std::unique_ptr<CpuReference>> makeOneDnnReference(const ReferenceCall &call, int threads)
{
    const Operator *op = findOperator(call.op);
    if (!op)
        return fail(ErrorCode::InvalidInput, "Cannot call onednn: it has no \"" + call.op
                                                 + "\" here; expected softmax, layernorm or conv2d_nhwc.");
    if (auto roles = requireRoles(call, op->roles); !roles)
        return tl::unexpected(roles.error());
    Sizes sizes;
    for (const std::string &name : op->sizes) {
        const auto size = sizeOf(call, name);
        if (!size)
            return tl::unexpected(size.error());
        sizes.push_back(*size);
    }
    const auto library = dnnl::loadLibrary(threads);
    if (!library)
        return tl::unexpected(library.error());
    auto primitives = std::make_unique<Primitives>(*library, call.op, threads);
    int status = primitives->open();
    if (status == 0)
        status = op->prepare(*primitives, sizes);
    if (status != 0)
        return fail(ErrorCode::Unavailable,
                    "Cannot prepare " + call.op + " in oneDNN: status " + std::to_string(status) + ".");
    return std::unique_ptr<CpuReference>(std::move(primitives));
}

} // namespace klineage::gate
