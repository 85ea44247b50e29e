// SPDX-License-Identifier: GPL-3.0-or-later
//
// Operation graphs for cuDNN's engines. Attention is written out as the chain that its fused engines recognise: product, scale,
// softmax by maximum, difference, exponential, sum and quotient, product.
#if __has_include(<cudnn.h>)
#include "core/device/cuda/cudnnoperators.h"

#include <cmath>
#include <limits>
#include <optional>

namespace klineage::gate::cuda {

namespace {

constexpr std::size_t convolutionProposals = 10;
constexpr std::size_t attentionProposals = 4; // each is compiled when it is built
constexpr cudnnDataType_t computeType = CUDNN_DATA_FLOAT;

using Kind = CudnnTensor::Kind;

tl::unexpected<Error> problem(const CudnnGraph &graph, const char *what)
{
    if (!graph.status())
        return tl::unexpected(graph.status().error());
    const std::string why = graph.refusal().empty() ? std::string() : " (" + graph.refusal() + ")";
    return fail(ErrorCode::Unavailable, "Cannot use cuDNN for " + std::string(what)
                                            + ": no engine supports it on this device" + why + ".");
}

/// Pointwise and reduction nodes of one graph; every result is a new virtual tensor.
class Chain
{
public:
    Chain(CudnnGraph &graph, std::int64_t firstUid)
        : m_graph(graph)
        , m_uid(firstUid)
    {}

    cudnnBackendDescriptor_t virtualTensor(const std::vector<std::int64_t> &dims, cudnnDataType_t type)
    {
        std::vector<std::int64_t> strides(dims.size(), 1);
        for (std::size_t i = dims.size() - 1; i-- > 0;)
            strides[i] = strides[i + 1] * dims[i + 1];
        return m_graph.tensor({m_uid++, dims, strides, type, Kind::Virtual});
    }
    /// b: nullptr for an operation of one operand.
    void pointwise(cudnnPointwiseMode_t mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                   cudnnBackendDescriptor_t y, cudnnDataType_t precision = computeType)
    {
        const auto what =
            m_graph.make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
                         {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
                          {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &precision}});
        const auto type = CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR;
        const auto ref = &CudnnGraph::ref;
        operations.push_back(b ? m_graph.make(type, {ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what),
                                                     ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x),
                                                     ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b),
                                                     ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)})
                               : m_graph.make(type, {ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what),
                                                     ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x),
                                                     ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)}));
    }
    /// y: the place of each element along an axis.
    void index(std::int64_t axis, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
    {
        const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_GEN_INDEX;
        const cudnnDataType_t type = computeType; // not the type of the result
        const auto what = m_graph.make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
                                       {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
                                        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type},
                                        {CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis}});
        operations.push_back(
            m_graph.make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                         {CudnnGraph::ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what),
                          CudnnGraph::ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x),
                          CudnnGraph::ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)}));
    }
    /// y = choice ? x : b
    void select(cudnnBackendDescriptor_t choice, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
                cudnnBackendDescriptor_t y)
    {
        const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_BINARY_SELECT;
        const auto what =
            m_graph.make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
                         {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
                          {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &computeType}});
        operations.push_back(
            m_graph.make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                         {CudnnGraph::ref(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what),
                          CudnnGraph::ref(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x),
                          CudnnGraph::ref(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b),
                          CudnnGraph::ref(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, choice),
                          CudnnGraph::ref(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y)}));
    }
    void reduction(cudnnReduceTensorOp_t mode, cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
    {
        const auto what =
            m_graph.make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR,
                         {{CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode},
                          {CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computeType}});
        operations.push_back(m_graph.make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
                                          {CudnnGraph::ref(CUDNN_ATTR_OPERATION_REDUCTION_DESC, what),
                                           CudnnGraph::ref(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x),
                                           CudnnGraph::ref(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y)}));
    }
    void matmul(cudnnBackendDescriptor_t a, cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c)
    {
        const auto what =
            m_graph.make(CUDNN_BACKEND_MATMUL_DESCRIPTOR,
                         {{CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computeType}});
        operations.push_back(m_graph.make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
                                          {CudnnGraph::ref(CUDNN_ATTR_OPERATION_MATMUL_DESC, what),
                                           CudnnGraph::ref(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a),
                                           CudnnGraph::ref(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b),
                                           CudnnGraph::ref(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)}));
    }

    std::vector<cudnnBackendDescriptor_t> operations;

private:
    CudnnGraph &m_graph;
    std::int64_t m_uid;
};

struct Attention {
    std::int64_t batches, heads, kvHeads, length, dim;
    [[nodiscard]] std::vector<std::int64_t> dims() const { return {batches, heads, length, dim}; }
    /// Packed: token, head, element.
    [[nodiscard]] std::vector<std::int64_t> strides() const
    {
        return {length * heads * dim, dim, heads * dim, 1};
    }
    /// The same for keys and values.
    [[nodiscard]] Attention ofKeys() const { return {batches, kvHeads, kvHeads, length, dim}; }
};

enum Uid : std::int64_t { uidQ = 1, uidK, uidV, uidOut, uidScale, uidNothing, uidVirtual };

/// Scores, those of later keys than the query replaced by the value that uidNothing is bound to. `places`: the type of the indices;
/// which one the engines recognise depends on the version.
cudnnBackendDescriptor_t masked(CudnnGraph &graph, Chain &chain, const std::vector<std::int64_t> &dims,
                                cudnnBackendDescriptor_t scores, cudnnDataType_t places)
{
    const auto nothing =
        graph.tensor({uidNothing, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Kind::Value});
    const auto query = chain.virtualTensor(dims, places);
    const auto key = chain.virtualTensor(dims, places);
    const auto seen = chain.virtualTensor(dims, CUDNN_DATA_BOOLEAN);
    const auto result = chain.virtualTensor(dims, CUDNN_DATA_FLOAT);
    chain.index(2, scores, query);
    chain.index(3, scores, key);
    chain.pointwise(CUDNN_POINTWISE_CMP_GE, query, key, seen, CUDNN_DATA_BOOLEAN);
    chain.select(seen, scores, nothing, result);
    return result;
}

/// causal: the type of the indices that its mask compares.
std::vector<CudnnPlan> chainPlans(CudnnGraph &graph, const Attention &a,
                                  std::optional<cudnnDataType_t> causal = std::nullopt)
{
    const std::vector<std::int64_t> scores{a.batches, a.heads, a.length, a.length};
    const std::vector<std::int64_t> rows{a.batches, a.heads, a.length, 1};
    const auto q = graph.tensor({uidQ, a.dims(), a.strides()});
    const auto k = graph.tensor({uidK,
                                 {a.batches, a.kvHeads, a.dim, a.length},
                                 {a.length * a.kvHeads * a.dim, a.dim, 1, a.kvHeads * a.dim}});
    const auto v = graph.tensor({uidV, a.ofKeys().dims(), a.ofKeys().strides()});
    const auto out = graph.tensor({uidOut, a.dims(), a.strides()});
    const auto scale = graph.tensor({uidScale, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Kind::Value});
    Chain chain(graph, uidVirtual);
    const auto product = chain.virtualTensor(scores, CUDNN_DATA_FLOAT);
    const auto scaled = chain.virtualTensor(scores, CUDNN_DATA_FLOAT);
    const auto largest = chain.virtualTensor(rows, CUDNN_DATA_FLOAT);
    const auto difference = chain.virtualTensor(scores, CUDNN_DATA_FLOAT);
    const auto exponential = chain.virtualTensor(scores, CUDNN_DATA_FLOAT);
    const auto sum = chain.virtualTensor(rows, CUDNN_DATA_FLOAT);
    const auto weights = chain.virtualTensor(scores, CUDNN_DATA_HALF);
    chain.matmul(q, k, product);
    chain.pointwise(CUDNN_POINTWISE_MUL, product, scale, scaled);
    const auto seen = causal ? masked(graph, chain, scores, scaled, *causal) : scaled;
    chain.reduction(CUDNN_REDUCE_TENSOR_MAX, seen, largest);
    chain.pointwise(CUDNN_POINTWISE_SUB, seen, largest, difference);
    chain.pointwise(CUDNN_POINTWISE_EXP, difference, nullptr, exponential);
    chain.reduction(CUDNN_REDUCE_TENSOR_ADD, exponential, sum);
    chain.pointwise(CUDNN_POINTWISE_DIV, exponential, sum, weights);
    chain.matmul(weights, v, out);
    return graph.plans(chain.operations, attentionProposals);
}

std::vector<CudnnPlan> nodePlans([[maybe_unused]] CudnnGraph &graph, [[maybe_unused]] const Attention &a)
{
#if CUDNN_VERSION >= 91301
    const auto q = graph.tensor({uidQ, a.dims(), a.strides()});
    const auto k = graph.tensor(
        {uidK, a.ofKeys().dims(), a.ofKeys().strides()}); // not transposed, other than in the chain
    const auto v = graph.tensor({uidV, a.ofKeys().dims(), a.ofKeys().strides()});
    const auto out = graph.tensor({uidOut, a.dims(), a.strides()});
    const auto scale = graph.tensor({uidScale, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_DATA_FLOAT, Kind::Value});
    const auto node = graph.make(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
                                 {CudnnGraph::ref(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC, q),
                                  CudnnGraph::ref(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC, k),
                                  CudnnGraph::ref(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC, v),
                                  CudnnGraph::ref(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC, out),
                                  CudnnGraph::ref(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC, scale)});
    return graph.plans({node}, attentionProposals);
#else
    return {};
#endif
}

} // namespace

Result<CudnnOperator> cudnnConvolution(CudnnGraph &graph, const ReferenceCall &call, bool nchw)
{
    const auto size = [&](const char *name) { return call.sizes.at(name); };
    const std::int64_t n = size("n"), h = size("h"), w = size("w"), c = size("c"), f = size("f");
    const auto image = [&](std::int64_t channels) {
        return nchw ? std::vector<std::int64_t>{channels * h * w, h * w, w, 1}
                    : std::vector<std::int64_t>{channels * h * w, 1, w * channels, channels};
    };
    const std::vector<std::int64_t> filter =
        nchw ? std::vector<std::int64_t>{9 * c, 9, 3, 1} : std::vector<std::int64_t>{9 * c, 1, 3 * c, c};
    const auto x = graph.tensor({1, {n, c, h, w}, image(c)});
    const auto weight = graph.tensor({2, {f, c, 3, 3}, filter});
    const auto y = graph.tensor({3, {n, f, h, w}, image(f)});

    const std::int64_t ones[] = {1, 1};
    const std::int64_t spatial = 2;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const auto convolution =
        graph.make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
                   {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &computeType},
                    {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
                    {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &spatial},
                    {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones},
                    {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones},
                    {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, ones},
                    {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, ones}});
    const float alpha = 1.0f;
    const float beta = 0.0f;
    const auto operation =
        graph.make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                   {CudnnGraph::ref(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution),
                    CudnnGraph::ref(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x),
                    CudnnGraph::ref(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, weight),
                    CudnnGraph::ref(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y),
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &alpha},
                    {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &beta}});
    CudnnOperator result;
    result.plans = graph.plans({operation}, convolutionProposals);
    if (result.plans.empty())
        return problem(graph, "this convolution");

    const auto narrow = [](const std::vector<std::int64_t> &values) {
        std::array<int, 4> out{};
        for (std::size_t i = 0; i < 4; ++i)
            out[i] = static_cast<int>(values[i]);
        return out;
    };
    const auto relaid = [&](std::int64_t channels) -> std::optional<CudnnRelayout> {
        if (!nchw)
            return std::nullopt;
        return CudnnRelayout{narrow({n, channels, h, w}),
                             narrow({channels * h * w, 1, w * channels, channels}), narrow(image(channels))};
    };
    result.slots = {{1, "data", false, relaid(c), 0},
                    {2, "weight", false,
                     CudnnRelayout{narrow({f, c, 3, 3}), narrow({1, f, 3 * c * f, c * f}), narrow(filter)},
                     0},
                    {3, "out", true, relaid(f), 0}};
    return result;
}

Result<CudnnOperator> cudnnAttention(CudnnGraph &graph, CudnnGraph &alternative, const ReferenceCall &call,
                                     bool causal)
{
    const std::int64_t batches = call.sizes.at("b");
    const std::int64_t tokens = call.sizes.at("t");
    if (tokens % batches != 0)
        return fail(ErrorCode::InvalidInput,
                    "Cannot call cudnn " + call.op
                        + ": it takes sequences of one length, and t is no multiple of b.");
    const std::int64_t heads = call.sizes.at("h");
    const auto shared = call.sizes.find("kv_h");
    const std::int64_t kvHeads = shared == call.sizes.end() ? heads : shared->second;
    if (kvHeads < 1 || heads % kvHeads != 0)
        return fail(ErrorCode::InvalidInput,
                    "Cannot call cudnn " + call.op
                        + ": h is no multiple of kv_h, the heads of keys and values.");
    const Attention attention{batches, heads, kvHeads, tokens / batches, call.sizes.at("d")};
    CudnnOperator result;
    result.plans = causal ? chainPlans(graph, attention, CUDNN_DATA_INT32) : chainPlans(graph, attention);
    if (!causal || result.plans.empty()) {
        const auto more =
            causal ? chainPlans(alternative, attention, CUDNN_DATA_FLOAT) : nodePlans(alternative, attention);
        result.plans.insert(result.plans.end(), more.begin(), more.end());
    }
    if (result.plans.empty())
        return problem(graph, "this attention");
    const float scale = 1.0f / std::sqrt(static_cast<float>(attention.dim));
    result.slots = {{uidQ, "q", false, {}, 0},
                    {uidK, "k", false, {}, 0},
                    {uidV, "v", false, {}, 0},
                    {uidOut, "out", true, {}, 0},
                    {uidScale, "", false, {}, scale}};
    if (causal)
        result.slots.push_back({uidNothing, "", false, {}, std::numeric_limits<float>::lowest()});
    return result;
}

} // namespace klineage::gate::cuda

#endif
