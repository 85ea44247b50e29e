// SPDX-License-Identifier: GPL-3.0-or-later
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
};

constexpr Operator operators[] = {
    {"gemm_nt", CUDA_R_16BF, false},
    {"gemm_nt_f8e4m3", CUDA_R_8F_E4M3, false},
    {"gemm_nt_f8e4m3_fast", CUDA_R_8F_E4M3, true},
};

const Operator *operatorNamed(const std::string &name)
{
    const auto found =
        std::ranges::find_if(operators, [&](const Operator &known) { return name == known.name; });
    return found == std::end(operators) ? nullptr : found;
}

/// cuBLASLt is column-major, so outᵀ (n × m) = b · aᵀ is asked for, as of cuBLAS.
class LtGemmNt : public Subject
{
public:
    LtGemmNt(const CublasLt &lt, const Operator &which, const VendorContext &context,
             const ReferenceCall &call, std::vector<AddressSet> sets)
        : m_lt(lt)
        , m_operator(which)
        , m_context(context)
        , m_call(call)
        , m_sets(std::move(sets))
    {}
    ~LtGemmNt() override
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

Status LtGemmNt::describe()
{
    const auto m = static_cast<std::uint64_t>(m_call.sizes.at("m"));
    const auto n = static_cast<std::uint64_t>(m_call.sizes.at("n"));
    const auto k = static_cast<std::uint64_t>(m_call.sizes.at("k"));
    const cublasOperation_t transpose = CUBLAS_OP_T;
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
    const auto ld = static_cast<std::int64_t>(k);
    for (const auto &[layout, type, rows, columns, stride] :
         {std::tuple{&m_b, m_operator.operands, k, n, ld},
          {&m_a, m_operator.operands, k, m, ld},
          {&m_out, CUDA_R_16BF, n, m, static_cast<std::int64_t>(n)}}) {
        if (auto made =
                check(m_lt.layoutCreate(layout, type, rows, columns, stride), "cublasLtMatrixLayoutCreate");
            !made)
            return made;
    }
    return {};
}

Status LtGemmNt::propose()
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

Status LtGemmNt::prepare()
{
    if (auto described = describe(); !described)
        return described;
    if (auto proposed = propose(); !proposed)
        return proposed;
    auto workspace = DeviceMemory::allocate(m_context.driver, workspaceBytes);
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

Status LtGemmNt::enqueueWith(const cublasLtMatmulHeuristicResult_t &algorithm, CUstream stream,
                             std::size_t set)
{
    const float alpha = 1.0f;
    const float beta = 0.0f;
    void *out = buffer("out", set);
    const auto status = m_lt.matmul(m_handle, m_desc, &alpha, buffer("b", set), m_b, buffer("a", set), m_a,
                                    &beta, out, m_out, out, m_out, &algorithm.algo, m_workspace.get(),
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
                        + "\": expected \"gemm_nt\", \"gemm_nt_f8e4m3\" or \"gemm_nt_f8e4m3_fast\".");
    if (auto complete = requireRoles(call, sets, {"m", "n", "k"}, {"a", "b", "out"}); !complete)
        return tl::unexpected(complete.error());
    const auto lt = CublasLt::load();
    if (!lt)
        return tl::unexpected(lt.error());
    auto subject = std::make_unique<LtGemmNt>(*lt, *which, context, call, std::move(sets));
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
