// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/vendor.h"

#if __has_include(<cudnn.h>)
#include "core/device/cuda/cudnnoperators.h"
#define KLINEAGE_HAVE_CUDNN 1
#endif

#include <algorithm>

namespace klineage::gate::cuda {

#ifdef KLINEAGE_HAVE_CUDNN

namespace {

constexpr std::int64_t mostWorkspaceBytes = std::int64_t{1} << 30;

/// The copies of one operand in the layout that the kernel wants, one a set, and how to fill them.
struct Relaid {
    const CudnnSlot *slot = nullptr;
    cudnnTensorDescriptor_t plain = nullptr;
    cudnnTensorDescriptor_t laid = nullptr;
    std::vector<DeviceMemory> copies;
};

class CudnnSubject : public Subject
{
public:
    CudnnSubject(const Cudnn &api, const VendorContext &context, const ReferenceCall &call)
        : m_api(api)
        , m_context(context)
        , m_call(call)
    {}
    ~CudnnSubject() override;

    Status prepare(std::vector<AddressSet> sets);
    Status enqueue(CUstream stream, std::size_t set) override
    {
        return m_problem ? execute(m_chosen, stream, set) : m_problem;
    }
    Status enqueueChecked(CUstream stream, std::size_t set) override;
    std::size_t setCount() const override { return m_sets.size(); }
    void rebind(std::vector<AddressSet> sets) override { m_problem = bind(std::move(sets)); }
    std::string version() const override
    {
        const auto version = m_api.getVersion();
        return "cudnn " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "."
               + std::to_string(version % 100) + " (plan " + std::to_string(m_chosen + 1) + " of "
               + std::to_string(m_operator.plans.size()) + ")";
    }

private:
    Status describe();
    Status describeRelaid();
    Status allocateWorkspace();
    Status bind(std::vector<AddressSet> sets);
    Status bindSet(std::size_t set);
    Status transform(const Relaid &relaid, std::size_t set, CUstream stream);
    Status execute(std::size_t plan, CUstream stream, std::size_t set);
    [[nodiscard]] void *buffer(const CudnnSlot &slot, std::size_t set) const
    {
        return reinterpret_cast<void *>(m_sets[set].at(m_call.buffers.at(slot.role)));
    }

    Cudnn m_api;
    VendorContext m_context;
    ReferenceCall m_call;
    cudnnHandle_t m_handle = nullptr;
    std::unique_ptr<CudnnGraph> m_graph;
    std::unique_ptr<CudnnGraph> m_alternative;
    CudnnOperator m_operator;
    std::vector<Relaid> m_relaid;
    DeviceMemory m_workspace;
    std::vector<AddressSet> m_sets;
    std::unique_ptr<CudnnGraph> m_packs; ///< owns m_bindings
    std::vector<cudnnBackendDescriptor_t> m_bindings;
    std::size_t m_chosen = 0;
    Status m_problem;
};

CudnnSubject::~CudnnSubject()
{
    for (const Relaid &relaid : m_relaid) {
        m_api.destroyTensor(relaid.plain);
        m_api.destroyTensor(relaid.laid);
    }
    m_packs.reset();
    m_alternative.reset();
    m_graph.reset();
    if (m_handle)
        m_api.destroy(m_handle);
}

Status CudnnSubject::describe()
{
    if (auto made = m_api.check(m_api.create(&m_handle), "cudnnCreate"); !made)
        return made;
    m_graph = std::make_unique<CudnnGraph>(m_api, m_handle);
    m_alternative = std::make_unique<CudnnGraph>(m_api, m_handle);
    const bool causal = m_call.op == "sdpa_causal";
    auto described = causal || m_call.op == "sdpa"
                         ? cudnnAttention(*m_graph, *m_alternative, m_call, causal)
                         : cudnnConvolution(*m_graph, m_call, m_call.op == "conv2d_nchw");
    if (!described)
        return tl::unexpected(described.error());
    m_operator = std::move(*described);
    return describeRelaid();
}

Status CudnnSubject::describeRelaid()
{
    for (const CudnnSlot &slot : m_operator.slots) {
        if (!slot.relayout)
            continue;
        Relaid &relaid = m_relaid.emplace_back();
        relaid.slot = &slot;
        const auto &dims = slot.relayout->dims;
        for (const auto &[descriptor, strides] :
             {std::pair{&relaid.plain, &slot.relayout->plain}, {&relaid.laid, &slot.relayout->laid}}) {
            if (auto made = m_api.check(m_api.createTensor(descriptor), "cudnnCreateTensorDescriptor"); !made)
                return made;
            const auto &s = *strides;
            if (auto set = m_api.check(m_api.setTensor4d(*descriptor, CUDNN_DATA_HALF, dims[0], dims[1],
                                                         dims[2], dims[3], s[0], s[1], s[2], s[3]),
                                       "cudnnSetTensor4dDescriptorEx");
                !set)
                return set;
        }
    }
    return {};
}

Status CudnnSubject::allocateWorkspace()
{
    auto &plans = m_operator.plans;
    std::erase_if(plans, [](const CudnnPlan &plan) { return plan.workspaceBytes > mostWorkspaceBytes; });
    std::int64_t bytes = 0;
    for (const CudnnPlan &plan : plans)
        bytes = std::max(bytes, plan.workspaceBytes);
    auto workspace = vendorMemory(m_context.driver, static_cast<std::size_t>(bytes));
    if (!workspace)
        return tl::unexpected(workspace.error());
    m_workspace = std::move(*workspace);
    return {};
}

Status CudnnSubject::prepare(std::vector<AddressSet> sets)
{
    if (auto described = describe(); !described)
        return described;
    if (auto allocated = allocateWorkspace(); !allocated)
        return allocated;
    if (auto bound = bind(std::move(sets)); !bound)
        return bound;
    const auto best = fastest(m_context, m_operator.plans.size(),
                              [&](std::size_t plan) { return execute(plan, m_context.stream, 0); });
    if (!best)
        return tl::unexpected(best.error());
    m_chosen = *best;
    return {};
}

Status CudnnSubject::bind(std::vector<AddressSet> sets)
{
    m_sets = std::move(sets);
    m_packs = std::make_unique<CudnnGraph>(m_api, m_handle);
    m_bindings.clear();
    for (Relaid &relaid : m_relaid) {
        while (relaid.copies.size() < m_sets.size()) {
            auto copy =
                vendorMemory(m_context.driver, relaid.slot->relayout->elements() * sizeof(std::uint16_t));
            if (!copy)
                return tl::unexpected(copy.error());
            relaid.copies.push_back(std::move(*copy));
        }
        relaid.copies.resize(m_sets.size());
    }
    for (std::size_t set = 0; set < m_sets.size(); ++set) {
        if (auto bound = bindSet(set); !bound)
            return bound;
    }
    return m_context.driver.check(m_context.driver.streamSynchronize(m_context.stream),
                                  "lay out operands for cuDNN");
}

Status CudnnSubject::bindSet(std::size_t set)
{
    std::vector<std::int64_t> uids;
    std::vector<void *> pointers;
    for (CudnnSlot &slot : m_operator.slots) {
        uids.push_back(slot.uid);
        pointers.push_back(slot.role.empty() ? &slot.value : buffer(slot, set));
        const auto relaid = std::find_if(m_relaid.begin(), m_relaid.end(),
                                         [&](const Relaid &candidate) { return candidate.slot == &slot; });
        if (relaid == m_relaid.end())
            continue;
        pointers.back() = pointerTo(relaid->copies[set]);
        if (slot.output)
            continue;
        if (auto transformed = transform(*relaid, set, m_context.stream); !transformed)
            return transformed;
    }
    void *workspace = pointerTo(m_workspace);
    const auto count = static_cast<std::int64_t>(uids.size());
    m_bindings.push_back(
        m_packs->make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
                      {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids.data()},
                       {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data()},
                       {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace}}));
    return m_packs->status();
}

Status CudnnSubject::transform(const Relaid &relaid, std::size_t set, CUstream stream)
{
    const float alpha = 1.0f;
    const float beta = 0.0f;
    void *plain = buffer(*relaid.slot, set);
    void *laid = pointerTo(relaid.copies[set]);
    const bool out = relaid.slot->output;
    m_api.setStream(m_handle, reinterpret_cast<cudaStream_t>(stream));
    return m_api.check(m_api.transformTensor(m_handle, &alpha, out ? relaid.laid : relaid.plain,
                                             out ? laid : plain, &beta, out ? relaid.plain : relaid.laid,
                                             out ? plain : laid),
                       "cudnnTransformTensor");
}

Status CudnnSubject::execute(std::size_t plan, CUstream stream, std::size_t set)
{
    if (auto streamed =
            m_api.check(m_api.setStream(m_handle, reinterpret_cast<cudaStream_t>(stream)), "cudnnSetStream");
        !streamed)
        return streamed;
    return m_api.check(m_api.execute(m_handle, m_operator.plans[plan].descriptor, m_bindings[set]),
                       "cudnnBackendExecute");
}

Status CudnnSubject::enqueueChecked(CUstream stream, std::size_t set)
{
    if (!m_problem)
        return m_problem;
    for (const Relaid &relaid : m_relaid) {
        if (relaid.slot->output)
            continue;
        if (auto transformed = transform(relaid, set, stream); !transformed)
            return transformed;
    }
    if (auto executed = execute(m_chosen, stream, set); !executed)
        return executed;
    for (const Relaid &relaid : m_relaid) {
        if (!relaid.slot->output)
            continue;
        if (auto transformed = transform(relaid, set, stream); !transformed)
            return transformed;
    }
    return {};
}

} // namespace

Result<std::unique_ptr<Subject>> makeCudnnSubject(const VendorContext &context, const ReferenceCall &call,
                                                  std::vector<AddressSet> sets)
{
    const bool convolution = call.op == "conv2d_nhwc" || call.op == "conv2d_nchw";
    if (!convolution && call.op != "sdpa" && call.op != "sdpa_causal")
        return fail(ErrorCode::InvalidInput,
                    "Cannot use cuDNN for \"" + call.op
                        + "\": expected conv2d_nhwc, conv2d_nchw, sdpa or sdpa_causal.");
    const auto complete = convolution
                              ? requireRoles(call, sets, {"n", "h", "w", "c", "f"}, {"data", "weight", "out"})
                              : requireRoles(call, sets, {"b", "t", "h", "d"}, {"q", "k", "v", "out"});
    if (!complete)
        return tl::unexpected(complete.error());
    const auto api = Cudnn::load();
    if (!api)
        return tl::unexpected(api.error());
    auto subject = std::make_unique<CudnnSubject>(*api, context, call);
    if (auto prepared = subject->prepare(std::move(sets)); !prepared)
        return tl::unexpected(prepared.error());
    return std::unique_ptr<Subject>(std::move(subject));
}

#else

Result<std::unique_ptr<Subject>> makeCudnnSubject(const VendorContext &, const ReferenceCall &,
                                                  std::vector<AddressSet>)
{
    return fail(ErrorCode::Unavailable, "Cannot use cuDNN: this program was built without its headers.");
}

#endif

} // namespace klineage::gate::cuda
