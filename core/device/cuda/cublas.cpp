// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/gemmcall.h"
#include "core/device/cuda/library.h"
#include "core/device/cuda/subject.h"

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#define KLINEAGE_HAVE_CUBLAS 1
#endif

namespace klineage::gate::cuda {

#ifdef KLINEAGE_HAVE_CUBLAS

namespace {

struct Cublas {
    decltype(&::cublasCreate_v2) create = nullptr;
    decltype(&::cublasDestroy_v2) destroy = nullptr;
    decltype(&::cublasGetVersion_v2) getVersion = nullptr;
    decltype(&::cublasSetStream_v2) setStream = nullptr;
    // Written out: the header overloads cublasGemmEx for C++.
    cublasStatus_t (*gemmEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                             const void *, const void *, cudaDataType, int, const void *, cudaDataType, int,
                             const void *, void *, cudaDataType, int, cublasComputeType_t,
                             cublasGemmAlgo_t) = nullptr;
    cublasStatus_t (*gemmBatched)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int, int, int,
                                  const void *, const void *, cudaDataType, int, long long, const void *,
                                  cudaDataType, int, long long, const void *, void *, cudaDataType, int,
                                  long long, int, cublasComputeType_t, cublasGemmAlgo_t) = nullptr;

    static Result<Cublas> load();
};

Result<Cublas> Cublas::load()
{
    auto library =
        Library::open({"libcublas.so.13", "libcublas.so.12"}, "the CUDA Toolkit 12 or later (cuBLAS)");
    if (!library)
        return tl::unexpected(library.error());
    Cublas cublas;
    if (!library->resolve(cublas.create, "cublasCreate_v2")
        || !library->resolve(cublas.destroy, "cublasDestroy_v2")
        || !library->resolve(cublas.getVersion, "cublasGetVersion_v2")
        || !library->resolve(cublas.setStream, "cublasSetStream_v2")
        || !library->resolve(cublas.gemmEx, "cublasGemmEx")
        || !library->resolve(cublas.gemmBatched, "cublasGemmStridedBatchedEx"))
        return fail(ErrorCode::Unavailable,
                    "Cannot use " + library->name() + ": it misses an entry point of cuBLAS 12.");
    return cublas;
}

/// cuBLAS is column-major, so outᵀ (n × m) = bᵀ · aᵀ is asked for: the row-major buffers need no copy.
class Gemm : public Subject
{
public:
    Gemm(const Cublas &cublas, cublasHandle_t handle, const ReferenceCall &call, const GemmCall &gemm,
         std::vector<AddressSet> sets)
        : m_cublas(cublas)
        , m_handle(handle)
        , m_call(call)
        , m_gemm(gemm)
        , m_sets(std::move(sets))
    {
        m_cublas.getVersion(m_handle, &m_version);
    }
    ~Gemm() override { m_cublas.destroy(m_handle); }

    Status enqueue(CUstream stream, std::size_t set) override;
    std::size_t setCount() const override { return m_sets.size(); }
    void rebind(std::vector<AddressSet> sets) override { m_sets = std::move(sets); }
    std::string version() const override
    {
        return "cublas " + std::to_string(m_version / 10000) + "." + std::to_string(m_version / 100 % 100)
               + "." + std::to_string(m_version % 100);
    }

private:
    [[nodiscard]] void *buffer(const char *role, std::size_t set) const
    {
        return reinterpret_cast<void *>(m_sets[set].at(m_call.buffers.at(role)));
    }

    Cublas m_cublas;
    cublasHandle_t m_handle;
    ReferenceCall m_call;
    GemmCall m_gemm;
    std::vector<AddressSet> m_sets;
    int m_version = 0;
};

Status Gemm::enqueue(CUstream stream, std::size_t set)
{
    const GemmCall &g = m_gemm;
    const float alpha = 1.0f;
    const float beta = 0.0f;
    cublasStatus_t status = m_cublas.setStream(m_handle, reinterpret_cast<cudaStream_t>(stream));
    const cublasOperation_t operation = g.transposeB ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int rowOfB = g.transposeB ? g.k : g.n;
    if (status == CUBLAS_STATUS_SUCCESS && g.batch == 1)
        status =
            m_cublas.gemmEx(m_handle, operation, CUBLAS_OP_N, g.n, g.m, g.k, &alpha, buffer("b", set),
                            CUDA_R_16BF, rowOfB, buffer("a", set), CUDA_R_16BF, g.k, &beta,
                            buffer("out", set), CUDA_R_16BF, g.n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    else if (status == CUBLAS_STATUS_SUCCESS)
        status = m_cublas.gemmBatched(m_handle, operation, CUBLAS_OP_N, g.n, g.m, g.k, &alpha,
                                      buffer("b", set), CUDA_R_16BF, rowOfB, g.strideB(), buffer("a", set),
                                      CUDA_R_16BF, g.k, g.strideA(), &beta, buffer("out", set), CUDA_R_16BF,
                                      g.n, g.strideOut(), g.batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (status != CUBLAS_STATUS_SUCCESS)
        return fail(ErrorCode::Internal,
                    "Cannot run cuBLAS: its product returned status " + std::to_string(status) + ".");
    return {};
}

bool hasAll(const ReferenceCall &call, const std::vector<AddressSet> &sets)
{
    for (const char *role : {"a", "b", "out"}) {
        const auto found = call.buffers.find(role);
        if (found == call.buffers.end())
            return false;
        for (const AddressSet &set : sets) {
            if (!set.contains(found->second))
                return false;
        }
    }
    return true;
}

} // namespace

Result<std::unique_ptr<Subject>> makeCublasSubject(const ReferenceCall &call, std::vector<AddressSet> sets)
{
    if (call.op != "gemm_nt" && call.op != "gemm_nn")
        return fail(ErrorCode::InvalidInput,
                    "Cannot use cuBLAS for \"" + call.op + "\": expected \"gemm_nt\" or \"gemm_nn\".");
    if (!hasAll(call, sets))
        return fail(ErrorCode::InvalidInput,
                    "Cannot use cuBLAS " + call.op + ": it needs buffers a, b and out.");
    const auto gemm = gemmCallOf(call);
    if (!gemm)
        return tl::unexpected(gemm.error());
    auto cublas = Cublas::load();
    if (!cublas)
        return tl::unexpected(cublas.error());
    cublasHandle_t handle = nullptr;
    if (const cublasStatus_t status = cublas->create(&handle); status != CUBLAS_STATUS_SUCCESS)
        return fail(ErrorCode::Unavailable,
                    "Cannot start cuBLAS: cublasCreate returned status " + std::to_string(status) + ".");
    return std::unique_ptr<Subject>(std::make_unique<Gemm>(*cublas, handle, call, *gemm, std::move(sets)));
}

#else

Result<std::unique_ptr<Subject>> makeCublasSubject(const ReferenceCall &, std::vector<AddressSet>)
{
    return fail(ErrorCode::Unavailable, "Cannot use cuBLAS: this program was built without its headers.");
}

#endif

} // namespace klineage::gate::cuda
