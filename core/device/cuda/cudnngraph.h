// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cudnn.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace klineage::gate::cuda {

// member, entry point of libcudnn.so.9
#define KLINEAGE_CUDNN_SYMBOLS(X) \
    X(getVersion, cudnnGetVersion) \
    X(getLastErrorString, cudnnGetLastErrorString) \
    X(create, cudnnCreate) \
    X(destroy, cudnnDestroy) \
    X(setStream, cudnnSetStream) \
    X(createDescriptor, cudnnBackendCreateDescriptor) \
    X(destroyDescriptor, cudnnBackendDestroyDescriptor) \
    X(setAttribute, cudnnBackendSetAttribute) \
    X(getAttribute, cudnnBackendGetAttribute) \
    X(finalize, cudnnBackendFinalize) \
    X(execute, cudnnBackendExecute) \
    X(createTensor, cudnnCreateTensorDescriptor) \
    X(destroyTensor, cudnnDestroyTensorDescriptor) \
    X(setTensor4d, cudnnSetTensor4dDescriptorEx) \
    X(transformTensor, cudnnTransformTensor)

/// cuDNN 9, loaded at run time.
struct Cudnn {
#define KLINEAGE_MEMBER(member, symbol) decltype(&::symbol) member = nullptr;
    KLINEAGE_CUDNN_SYMBOLS(KLINEAGE_MEMBER)
#undef KLINEAGE_MEMBER

    [[nodiscard]] static Result<Cudnn> load();
    /// ErrorCode::Unavailable with cuDNN's own words.
    [[nodiscard]] Status check(cudnnStatus_t status, const std::string &action) const;
};

struct CudnnTensor {
    std::int64_t uid = 0;
    std::vector<std::int64_t> dims;
    std::vector<std::int64_t> strides;
    cudnnDataType_t type = CUDNN_DATA_HALF;
    enum class Kind { Buffer, Virtual, Value } kind = Kind::Buffer; ///< Value: a scalar in host memory
};

struct CudnnAttribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    std::int64_t count;
    const void *values; ///< only read by make()
};

/// An execution plan and the scratch memory that it wants.
struct CudnnPlan {
    cudnnBackendDescriptor_t descriptor = nullptr;
    std::int64_t workspaceBytes = 0;
};

/// Owns the backend descriptors of operation graphs. The first failure is kept; what follows it does nothing.
class CudnnGraph
{
public:
    CudnnGraph(const Cudnn &api, cudnnHandle_t handle)
        : m_api(api)
        , m_handle(handle)
    {}
    ~CudnnGraph();
    CudnnGraph(const CudnnGraph &) = delete;
    CudnnGraph &operator=(const CudnnGraph &) = delete;

    [[nodiscard]] cudnnBackendDescriptor_t tensor(const CudnnTensor &tensor);
    /// Creates, fills and finalizes a descriptor; nullptr after a failure.
    [[nodiscard]] cudnnBackendDescriptor_t make(cudnnBackendDescriptorType_t type,
                                                std::initializer_list<CudnnAttribute> attributes);
    /// The first `most` plans that the heuristics propose for a graph of these operations and that can be built, the most promising first.
    /// Empty after a failure.
    [[nodiscard]] std::vector<CudnnPlan> plans(const std::vector<cudnnBackendDescriptor_t> &operations,
                                               std::size_t most);
    [[nodiscard]] const Status &status() const { return m_status; }
    /// What cuDNN said of the last plan that could not be built.
    [[nodiscard]] const std::string &refusal() const { return m_refusal; }

    /// Attributes of one descriptor; the pointer must stay valid until make() returns.
    [[nodiscard]] static CudnnAttribute ref(cudnnBackendAttributeName_t name,
                                            const cudnnBackendDescriptor_t &descriptor)
    {
        return {name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &descriptor};
    }

private:
    [[nodiscard]] cudnnBackendDescriptor_t create(cudnnBackendDescriptorType_t type);
    bool note(cudnnStatus_t status, const std::string &action);
    void noteRefusal();
    [[nodiscard]] std::vector<cudnnBackendDescriptor_t> configurations(cudnnBackendDescriptor_t graph,
                                                                       std::size_t most);

    const Cudnn &m_api;
    cudnnHandle_t m_handle;
    std::vector<cudnnBackendDescriptor_t> m_owned;
    Status m_status;
    std::string m_refusal;
};

} // namespace klineage::gate::cuda
