// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/gemmcall.h"
#include "core/device/cuda/library.h"
#include "core/device/cuda/vendor.h"

#include <algorithm>
#include <iterator>

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
#define KLINEAGE_HAVE_CUBLASLT 1
#endif

namespace klineage::gate::cuda {

#ifdef KLINEAGE_HAVE_CUBLASLT

namespace {

constexpr std::size_t workspaceBytes = std::size_t{32} << 20;
constexpr int proposals = 16;

// member, entry point
#define KLINEAGE_CUBLASLT_SYMBOLS(X) \
    X(create, cublasLtCreate) \
    X(destroy, cublasLtDestroy) \
    X(getVersion, cublasLtGetVersion) \
    X(descCreate, cublasLtMatmulDescCreate) \
    X(descDestroy, cublasLtMatmulDescDestroy) \
    X(descSet, cublasLtMatmulDescSetAttribute) \
    X(layoutCreate, cublasLtMatrixLayoutCreate) \
    X(layoutDestroy, cublasLtMatrixLayoutDestroy) \
    X(layoutSet, cublasLtMatrixLayoutSetAttribute) \
    X(preferenceCreate, cublasLtMatmulPreferenceCreate) \
    X(preferenceDestroy, cublasLtMatmulPreferenceDestroy) \
    X(preferenceSet, cublasLtMatmulPreferenceSetAttribute) \
    X(heuristic, cublasLtMatmulAlgoGetHeuristic) \
    X(matmul, cublasLtMatmul)

struct CublasLt {
#define KLINEAGE_MEMBER(member, symbol) decltype(&::symbol) member = nullptr;
    KLINEAGE_CUBLASLT_SYMBOLS(KLINEAGE_MEMBER)
#undef KLINEAGE_MEMBER

    static Result<CublasLt> load()
    {
        const auto library = Library::open({"libcublasLt.so.13", "libcublasLt.so.12"},
                                           "the CUDA Toolkit 12 or later (cuBLAS)");
        if (!library)
            return tl::unexpected(library.error());
        CublasLt lt;
#define KLINEAGE_RESOLVE(member, symbol) \
    if (!library->resolve(lt.member, #symbol)) \
        return fail(ErrorCode::Unavailable, "Cannot use " + library->name() + ": it misses " #symbol ".");
        KLINEAGE_CUBLASLT_SYMBOLS(KLINEAGE_RESOLVE)
#undef KLINEAGE_RESOLVE
        return lt;
    }
};

Status check(cublasStatus_t status, const char *action)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return {};
    return fail(ErrorCode::Unavailable, "Cannot use cuBLASLt: " + std::string(action) + " returned status "
                                            + std::to_string(status) + ".");
}

/// How an operator reads its operands. The output is bf16, sums are f32; fast accumulation leaves sums of 8-bit products in the
/// tensor cores, which keep fewer bits of them.
struct Operator {
    const char *name;
    cudaDataType operands;
    bool fastAccumulation;
    bool bias = false;
};

constexpr Operator operators[] = {
    {"gemm_nt", CUDA_R_16BF, false},
    {"gemm_nn", CUDA_R_16BF, false},
    {"gemm_nn_bias", CUDA_R_16BF, false, true},
    {"gemm_nt_f8e4m3", CUDA_R_8F_E4M3, false},
    {"gemm_nt_f8e4m3_fast", CUDA_R_8F_E4M3, true},
};

const Operator *operatorNamed(const std::string &name)
{
    const auto found =
        std::ranges::find_if(operators, [&](const Operator &known) { return name == known.name; });
    return found == std::end(operators) ? nullptr : found;
}

/// cuBLASLt is column-major, so outᵀ (n × m) = bᵀ · aᵀ is asked for, as of cuBLAS.
class LtGemm : public Subject
{
public:
    LtGemm(const CublasLt &lt, const Operator &which, const VendorContext &context, const ReferenceCall &call,
           const GemmCall &gemm, std::vector<AddressSet> sets)
        : m_lt(lt)
        , m_operator(which)
        , m_context(context)
        , m_call(call)
        , m_gemm(gemm)
        , m_sets(std::move(sets))
    {}
    ~LtGemm() override
    {
        for (cublasLtMatrixLayout_t layout : {m_a, m_b, m_out}) {
            if (layout)
                m_lt.layoutDestroy(layout);
        }
        if (m_desc)
            m_lt.descDestroy(m_desc);
        if (m_handle)
            m_lt.destroy(m_handle);
    }

    Status prepare();
    Status enqueue(CUstream stream, std::size_t set) override
    {
        return enqueueWith(m_algorithms[m_chosen], stream, set);
    }
    std::size_t setCount() const override { return m_sets.size(); }
    void rebind(std::vector<AddressSet> sets) override { m_sets = std::move(sets); }
    std::string version() const override
    {
        const auto version = m_lt.getVersion();
        return "cublaslt " + std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "."
               + std::to_string(version % 100) + " (algorithm " + std::to_string(m_chosen + 1) + " of "
               + std::to_string(m_algorithms.size()) + ")";
    }

private:
    Status describe();
    Status describeOperands(std::uint64_t m, std::uint64_t n, std::uint64_t k);
    Status addBias(std::size_t set);
    Status propose();
    Status enqueueWith(const cublasLtMatmulHeuristicResult_t &algorithm, CUstream stream, std::size_t set);
    [[nodiscard]] void *buffer(const char *role, std::size_t set) const
    {
        return reinterpret_cast<void *>(m_sets[set].at(m_call.buffers.at(role)));
    }

    CublasLt m_lt;
    Operator m_operator;
    VendorContext m_context;
    ReferenceCall m_call;
    GemmCall m_gemm;
    std::vector<AddressSet> m_sets;
    DeviceMemory m_workspace;
    cublasLtHandle_t m_handle = nullptr;
    cublasLtMatmulDesc_t m_desc = nullptr;
    cublasLtMatrixLayout_t m_a = nullptr;
    cublasLtMatrixLayout_t m_b = nullptr;
    cublasLtMatrixLayout_t m_out = nullptr;
    std::vector<cublasLtMatmulHeuristicResult_t> m_algorithms;
    std::size_t m_chosen = 0;
};

Status LtGemm::describe()
{
    const auto m = static_cast<std::uint64_t>(m_gemm.m);
    const auto n = static_cast<std::uint64_t>(m_gemm.n);
    const auto k = static_cast<std::uint64_t>(m_gemm.k);
    const cublasOperation_t transpose = m_gemm.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (auto made = check(m_lt.create(&m_handle), "cublasLtCreate"); !made)
        return made;
    if (auto made =
            check(m_lt.descCreate(&m_desc, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescCreate");
        !made)
        return made;
    if (auto set = check(m_lt.descSet(m_desc, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose),
                         "transposing");
        !set)
        return set;
    const std::int8_t fast = m_operator.fastAccumulation ? 1 : 0;
    if (auto set = check(m_lt.descSet(m_desc, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast),
                         "choosing the accumulation");
        !set)
        return set;
    if (auto added = addBias(0); !added)
        return added;
    return describeOperands(m, n, k);
}

/// The bias lies elsewhere in every set, and its address is a part of what is asked for.
Status LtGemm::addBias(std::size_t set)
{
    if (!m_operator.bias)
        return {};
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const void *const bias = buffer("bias", set);
    auto done = check(m_lt.descSet(m_desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
                      "asking for a bias");
    if (done)
        done = check(m_lt.descSet(m_desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(void *)),
                     "naming the bias");
    return done;
}

Status LtGemm::describeOperands(std::uint64_t m, std::uint64_t n, std::uint64_t k)
{
    struct Operand {
        cublasLtMatrixLayout_t *layout;
        cudaDataType type;
        std::uint64_t rows, columns;
        std::int64_t stride; ///< from one of the batch to the next
    };
    const std::uint64_t rowsOfB = m_gemm.transposeB ? k : n;
    for (const Operand &operand :
         {Operand{&m_b, m_operator.operands, rowsOfB, m_gemm.transposeB ? n : k, m_gemm.strideB()},
          Operand{&m_a, m_operator.operands, k, m, m_gemm.strideA()},
          Operand{&m_out, CUDA_R_16BF, n, m, m_gemm.strideOut()}}) {
        auto made = check(m_lt.layoutCreate(operand.layout, operand.type, operand.rows, operand.columns,
                                            static_cast<std::int64_t>(operand.rows)),
                          "cublasLtMatrixLayoutCreate");
        const std::int32_t count = m_gemm.batch;
        if (made && count > 1)
            made = check(
                m_lt.layoutSet(*operand.layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                "saying how many there are");
        if (made && count > 1)
            made = check(m_lt.layoutSet(*operand.layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                        &operand.stride, sizeof operand.stride),
                         "saying how far apart they are");
        if (!made)
            return made;
    }
    return {};
}

Status LtGemm::propose()
{
    cublasLtMatmulPreference_t preference = nullptr;
    if (auto made = check(m_lt.preferenceCreate(&preference), "cublasLtMatmulPreferenceCreate"); !made)
        return made;
    m_lt.preferenceSet(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspaceBytes,
                       sizeof workspaceBytes);
    m_algorithms.resize(proposals);
    int found = 0;
    const auto status = m_lt.heuristic(m_handle, m_desc, m_b, m_a, m_out, m_out, preference, proposals,
                                       m_algorithms.data(), &found);
    m_lt.preferenceDestroy(preference);
    m_algorithms.resize(static_cast<std::size_t>(std::max(found, 0)));
    return check(status, "cublasLtMatmulAlgoGetHeuristic");
}

Status LtGemm::prepare()
{
    if (auto described = describe(); !described)
        return described;
    if (auto proposed = propose(); !proposed)
        return proposed;
    auto workspace = vendorMemory(m_context.driver, workspaceBytes);
    if (!workspace)
        return tl::unexpected(workspace.error());
    m_workspace = std::move(*workspace);
    const auto best = fastest(m_context, m_algorithms.size(), [&](std::size_t i) {
        return enqueueWith(m_algorithms[i], m_context.stream, 0);
    });
    if (!best)
        return tl::unexpected(best.error());
    m_chosen = *best;
    return {};
}

Status LtGemm::enqueueWith(const cublasLtMatmulHeuristicResult_t &algorithm, CUstream stream, std::size_t set)
{
    const float alpha = 1.0f;
    const float beta = 0.0f;
    void *out = buffer("out", set);
    if (auto added = addBias(set); !added)
        return added;
    const auto status = m_lt.matmul(m_handle, m_desc, &alpha, buffer("b", set), m_b, buffer("a", set), m_a,
                                    &beta, out, m_out, out, m_out, &algorithm.algo, pointerTo(m_workspace),
                                    workspaceBytes, reinterpret_cast<cudaStream_t>(stream));
    return check(status, "cublasLtMatmul");
}

} // namespace

Result<std::unique_ptr<Subject>> makeCublasLtSubject(const VendorContext &context, const ReferenceCall &call,
                                                     std::vector<AddressSet> sets)
{
    const Operator *which = operatorNamed(call.op);
    if (!which)
        return fail(ErrorCode::InvalidInput,
                    "Cannot use cuBLASLt for \"" + call.op
                        + "\": expected \"gemm_nt\", \"gemm_nn\", \"gemm_nn_bias\", \"gemm_nt_f8e4m3\" or "
                          "\"gemm_nt_f8e4m3_fast\".");
    std::vector<std::string> roles{"a", "b", "out"};
    if (which->bias)
        roles.push_back("bias");
    if (auto complete = requireRoles(call, sets, {}, roles); !complete)
        return tl::unexpected(complete.error());
    const auto gemm = gemmCallOf(call);
    if (!gemm)
        return tl::unexpected(gemm.error());
    const auto lt = CublasLt::load();
    if (!lt)
        return tl::unexpected(lt.error());
    auto subject = std::make_unique<LtGemm>(*lt, *which, context, call, *gemm, std::move(sets));
    if (auto prepared = subject->prepare(); !prepared)
        return tl::unexpected(prepared.error());
    return std::unique_ptr<Subject>(std::move(subject));
}

#else

Result<std::unique_ptr<Subject>> makeCublasLtSubject(const VendorContext &, const ReferenceCall &,
                                                     std::vector<AddressSet>)
{
    return fail(ErrorCode::Unavailable, "Cannot use cuBLASLt: this program was built without its headers.");
}

#endif

} // namespace klineage::gate::cuda
