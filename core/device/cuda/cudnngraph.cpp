// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/library.h"

#if __has_include(<cudnn.h>)
#include "core/device/cuda/cudnngraph.h"

#include <algorithm>

namespace klineage::gate::cuda {

namespace {

constexpr std::size_t mostProposals = 32; // of the heuristics; some cannot be built

} // namespace

Result<Cudnn> Cudnn::load()
{
    const auto library = Library::open({"libcudnn.so.9"}, "cuDNN 9");
    if (!library)
        return tl::unexpected(library.error());
    Cudnn cudnn;
#define KLINEAGE_RESOLVE(member, symbol) \
    if (!library->resolve(cudnn.member, #symbol)) \
        return fail(ErrorCode::Unavailable, "Cannot use " + library->name() + ": it misses " #symbol ".");
    KLINEAGE_CUDNN_SYMBOLS(KLINEAGE_RESOLVE)
#undef KLINEAGE_RESOLVE
    return cudnn;
}

Status Cudnn::check(cudnnStatus_t status, const std::string &action) const
{
    if (status == CUDNN_STATUS_SUCCESS)
        return {};
    char words[512] = {};
    getLastErrorString(words, sizeof words);
    return fail(ErrorCode::Unavailable,
                "Cannot use cuDNN: " + action + " gave status " + std::to_string(static_cast<int>(status))
                    + ".",
                words);
}

CudnnGraph::~CudnnGraph()
{
    for (auto owned = m_owned.rbegin(); owned != m_owned.rend(); ++owned)
        m_api.destroyDescriptor(*owned);
}

void CudnnGraph::noteRefusal()
{
    char words[512] = {};
    m_api.getLastErrorString(words, sizeof words);
    m_refusal = words;
}

bool CudnnGraph::note(cudnnStatus_t status, const std::string &action)
{
    if (m_status)
        m_status = m_api.check(status, action);
    return m_status.has_value();
}

cudnnBackendDescriptor_t CudnnGraph::create(cudnnBackendDescriptorType_t type)
{
    cudnnBackendDescriptor_t descriptor = nullptr;
    if (m_status
        && note(m_api.createDescriptor(type, &descriptor),
                "creating descriptor " + std::to_string(static_cast<int>(type))))
        m_owned.push_back(descriptor);
    return descriptor;
}

cudnnBackendDescriptor_t CudnnGraph::make(cudnnBackendDescriptorType_t type,
                                          std::initializer_list<CudnnAttribute> attributes)
{
    const cudnnBackendDescriptor_t descriptor = create(type);
    for (const CudnnAttribute &attribute : attributes) {
        if (!m_status)
            return nullptr;
        note(
            m_api.setAttribute(descriptor, attribute.name, attribute.type, attribute.count, attribute.values),
            "setting attribute " + std::to_string(static_cast<int>(attribute.name)));
    }
    if (!m_status
        || !note(m_api.finalize(descriptor),
                 "finalizing descriptor " + std::to_string(static_cast<int>(type))))
        return nullptr;
    return descriptor;
}

cudnnBackendDescriptor_t CudnnGraph::tensor(const CudnnTensor &tensor)
{
    const std::int64_t alignment = 16;
    const bool isVirtual = tensor.kind == CudnnTensor::Kind::Virtual;
    const bool isValue = tensor.kind == CudnnTensor::Kind::Value;
    return make(CUDNN_BACKEND_TENSOR_DESCRIPTOR,
                {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &tensor.uid},
                 {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &tensor.type},
                 {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64,
                  static_cast<std::int64_t>(tensor.dims.size()), tensor.dims.data()},
                 {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64,
                  static_cast<std::int64_t>(tensor.strides.size()), tensor.strides.data()},
                 {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment},
                 {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &isVirtual},
                 {CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &isValue}});
}

std::vector<cudnnBackendDescriptor_t> CudnnGraph::configurations(cudnnBackendDescriptor_t graph,
                                                                 std::size_t most)
{
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    const auto heuristics = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
                                 {ref(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph),
                                  {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode}});
    std::vector<cudnnBackendDescriptor_t> results;
    for (std::size_t i = 0; i < most; ++i)
        results.push_back(create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    std::int64_t found = 0;
    if (!m_status
        || !note(m_api.getAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                    static_cast<std::int64_t>(most), &found, results.data()),
                 "asking the heuristics"))
        return {};
    results.resize(std::min(most, static_cast<std::size_t>(std::max<std::int64_t>(found, 0))));
    return results;
}

std::vector<CudnnPlan> CudnnGraph::plans(const std::vector<cudnnBackendDescriptor_t> &operations,
                                         std::size_t most)
{
    const auto graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
                            {{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &m_handle},
                             {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                              static_cast<std::int64_t>(operations.size()), operations.data()}});
    std::vector<CudnnPlan> plans;
    for (const cudnnBackendDescriptor_t configuration : configurations(graph, mostProposals)) {
        if (plans.size() == most)
            break;
        // A proposal that cannot be built on this device is no failure of the graph.
        const cudnnBackendDescriptor_t plan = create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        CudnnPlan made{plan, 0};
        std::int64_t count = 0;
        if (plan
            && m_api.setAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &m_handle)
                   == CUDNN_STATUS_SUCCESS
            && m_api.setAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                  CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &configuration)
                   == CUDNN_STATUS_SUCCESS
            && m_api.finalize(plan) == CUDNN_STATUS_SUCCESS
            && m_api.getAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count,
                                  &made.workspaceBytes)
                   == CUDNN_STATUS_SUCCESS)
            plans.push_back(made);
        else
            noteRefusal();
    }
    return plans;
}

} // namespace klineage::gate::cuda

#endif
